package actors

// laneWord says whose turn it is in a lane, so that a hung call and the tracker that gives it up exclude each other: the
// lane moves from ours to running before it calls user code and back afterwards; the tracker moves running to expired (the
// call's context is cancelled) and expired to fenced (the lane is given up). Exactly one of the two wins each step. Each
// call has its own number, so that a slow observer never acts on a later call.
//
// While the word is not ours, the lane's goroutine touches only what the tracker does not: the chain and the outs.
type laneWord struct {
	v word
	// seq numbers the calls. Owned by the lane.
	seq uint64
}

const (
	laneOurs uint64 = iota
	laneRunning
	laneExpired
	laneFenced
)

const laneStates = 4

// enter starts a call of user code.
func (w *laneWord) enter() {
	w.seq++
	w.v.publish(w.seq*laneStates + laneRunning)
}

// skip uses up the number of a call that is not made.
func (w *laneWord) skip() { w.seq++ }

// leave ends the call and returns the state that it was in: running, expired or fenced. After fenced the lane must not
// touch anything any more.
func (w *laneWord) leave() uint64 {
	if w.v.CompareAndSwap(w.seq*laneStates+laneRunning, w.seq*laneStates) {
		return laneRunning
	}

	if w.v.CompareAndSwap(w.seq*laneStates+laneExpired, w.seq*laneStates) {
		return laneExpired
	}

	return laneFenced
}

// look returns the number of the present call and its state. Safe from any goroutine.
func (w *laneWord) look() (seq, state uint64) {
	v := w.v.Load()

	return v / laneStates, v % laneStates
}

// expire marks call seq as past its deadline, if it is still running.
func (w *laneWord) expire(seq uint64) bool {
	return w.v.CompareAndSwap(seq*laneStates+laneRunning, seq*laneStates+laneExpired)
}

// fence gives call seq up, if it has expired and not ended. Whoever gets true owns the lane's memory.
func (w *laneWord) fence(seq uint64) bool {
	return w.v.CompareAndSwap(seq*laneStates+laneExpired, seq*laneStates+laneFenced)
}
