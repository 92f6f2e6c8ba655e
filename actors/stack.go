package actors

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"runtime/pprof"
	"strings"
)

// labelLane is the label of a lane's goroutine whose value no other lane of the process has.
const labelLane = "millrace.lane"

// labelsOf makes the labels of a lane's goroutine: they tell stages apart in profiles, and the goroutine can be found by
// them without a word from the lane.
func labelsOf(l *lane) context.Context {
	return pprof.WithLabels(context.Background(), pprof.Labels(
		"millrace.job", l.ch.plan.Job.Name, "millrace.channel", l.ch.spec.Name, labelLane, l.mark()))
}

// mark names this very lane, not the one that it replaces.
func (l *lane) mark() string { return fmt.Sprintf("%d@%p", l.num, l) }

// laneCall is a call of user code in a lane.
type laneCall struct {
	lane *lane
	seq  uint64
}

// goesOn reports whether the call has not ended.
func (c laneCall) goesOn() bool {
	seq, state := c.lane.word.look()

	return seq == c.seq && state != laneOurs
}

// AddStacks looks up what the running calls are at, in the process of the job; elsewhere it does nothing. It looks at all
// goroutines of the process, for which they stand still for a moment (below a millisecond for a thousand of them), so it is
// for people who ask. A call that has ended since the snapshot gets no stack.
func (s *Snapshot) AddStacks() {
	var profile []byte

	add := func(c laneCall, stack *[]string) {
		if c.lane == nil || !c.goesOn() {
			return
		}

		if profile == nil {
			var b bytes.Buffer
			if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
				return
			}

			profile = b.Bytes()
		}

		if found := stackOf(profile, c.lane.mark()); c.goesOn() {
			*stack = found
		}
	}

	for i := range s.Queues {
		if b := s.Queues[i].Blocking; b != nil {
			add(b.call, &b.Stack)
		}
	}

	for i := range s.Channels {
		for j := range s.Channels[i].Lanes {
			lane := &s.Channels[i].Lanes[j]
			add(lane.call, &lane.Stack)
		}
	}
}

// ourPackages is what the names of our own functions begin with in a profile.
const ourPackages = "github.com/millrace/millrace/"

// maxFrames is how many frames of a stack are kept.
const maxFrames = 32

// stackOf returns the frames of a lane's goroutine in a profile as text, from the innermost to where the lane begins. User
// code hands the labels on to goroutines that it starts; those are told from the lane's own by where they begin.
func stackOf(profile []byte, mark string) []string {
	label := fmt.Sprintf("%q:%q", labelLane, mark)

	for record := range strings.SplitSeq(string(profile), "\n\n") {
		if !strings.Contains(record, label) {
			continue
		}

		var frames []string

		for line := range strings.Lines(record) {
			// "#", the address, the function and where in it, the file and the line
			parts := strings.Fields(line)
			if len(parts) != 4 || parts[0] != "#" {
				continue
			}

			function := parts[2][:max(strings.LastIndexByte(parts[2], '+'), 0)]
			if strings.HasPrefix(function, ourPackages+"actors.(*lane).") {
				return frames[:min(len(frames), maxFrames)]
			}

			if !strings.HasPrefix(function, ourPackages+"pipeline.") {
				frames = append(frames, path.Base(function)+" ("+path.Base(parts[3])+")")
			}
		}
	}

	return nil
}
