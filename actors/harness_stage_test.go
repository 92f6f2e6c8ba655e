package actors

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// deed is what a stage or a sink does instead of its work.
type deed uint8

const (
	deedWork deed = iota
	deedFail
	deedAgain
	deedReject
	deedPanic
	deedHang
	deedSlow
	deedHeed
	// deedLate fails after it has emitted.
	deedLate
	// deedStuck lasts until it is past its deadline, which it heeds. Outages only.
	deedStuck
)

var errDeed = errors.New("a planned failure")

const propPath = "path"

func pathOf(m *pipeline.Message) string {
	if p := m.Props[propPath]; p != "" {
		return p
	}

	return m.ID
}

// draw decides what a call does, by the seed, the place, the message and how often it has come here.
func (w *world) draw(channel, stage int, path string) (deed, uint64) {
	site := fmt.Sprintf("%d/%d/%s", channel, stage, path)

	w.mu.Lock()
	w.draws[site]++
	turn := w.draws[site]
	down := w.outage.hits(channel, stage)
	w.mu.Unlock()

	id, _, _ := strings.Cut(path, "/")
	h := w.hash("deed", site, turn)

	if down {
		return w.outage.deed, h
	}

	if d, bad := w.poisoned(channel, id); bad && stage > 0 {
		return d, h
	}

	if !w.faulty.Load() {
		return deedWork, h
	}

	const resolution = 1 << 20

	x := float64(h%resolution) / resolution
	m := &w.spec.mood

	for i, rate := range []float64{m.fail, m.again, m.reject, m.panics, m.hang, m.slow, m.heed, m.late} {
		if x -= rate; x < 0 {
			return deed(i + 1), h >> 20
		}
	}

	return deedWork, h >> 20
}

// poisoned returns what a message does in a channel every time, if it is one that fails for good there.
func (w *world) poisoned(channel int, id string) (deed, bool) {
	p := w.hash("poison", id)

	return []deed{deedFail, deedReject, deedPanic}[p>>20%3],
		p%1000 < w.spec.poison && p>>10%uint64(len(w.spec.channels)) == uint64(channel)
}

// do carries a deed out; it returns a nil error when the call goes on to its work.
func (w *world) do(c *call, d deed, h uint64) error {
	timeout := w.spec.channels[c.channel].timeout

	switch d {
	case deedFail:
		w.fail(c, c.blame, plainly)

		return errDeed
	case deedAgain:
		w.fail(c, c.blame, plainly)

		return pipeline.RetryAfter(errDeed, time.Duration(h%3000)*time.Millisecond)
	case deedReject:
		w.fail(c, c.blame, rejecting)

		return pipeline.Reject(errDeed)
	case deedPanic:
		w.fail(c, c.blame, plainly)
		panic(errDeed)
	case deedHang:
		w.fail(c, c.blame, lasting)
		w.mu.Lock()
		w.stats.hangs++
		w.mu.Unlock()
		<-w.release

		return errDeed
	case deedSlow:
		long := timeout*time.Duration(h%150)/100 + untied(h)
		if long >= timeout {
			w.fail(c, c.blame, lasting)
		}

		<-time.After(long)
	case deedHeed:
		select {
		case <-time.After(timeout*time.Duration(h%300)/100 + untied(h)):
		case <-c.ctx.Done():
			if errors.Is(context.Cause(c.ctx), pipeline.ErrTimeout) {
				w.fail(c, c.blame, plainly)
			}

			return fmt.Errorf("heeded: %w", c.ctx.Err())
		}
	case deedStuck:
		<-c.ctx.Done()

		if errors.Is(context.Cause(c.ctx), pipeline.ErrTimeout) {
			w.fail(c, c.blame, plainly)
		}

		return fmt.Errorf("stuck: %w", c.ctx.Err())
	case deedWork, deedLate:
	}

	return nil
}

// untied keeps the end of a call away from the very instant at which its lane is given up: either may then win, and the
// world would count a call as ended that the lane lost.
func untied(h uint64) time.Duration {
	return time.Duration(h >> 20 % uint64(time.Millisecond))
}

// stage is one lane's instance of a stage.
type stage struct {
	p              *proc
	channel, index int
}

var _ pipeline.Transform = (*stage)(nil)

func (s *stage) Transform(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	w, path := s.p.w, pathOf(m)
	b := w.refs(s.p, m)
	c := w.begin(ctx, s.p, s.channel, s.index, m.Key, b)
	defer w.end(c)

	d, h := w.draw(s.channel, s.index, path)
	if err := w.do(c, d, h); err != nil {
		return err
	}

	if s.channel == 0 && s.index == 0 {
		w.pass(b.credit[0])
	}

	outs := w.outs(s.channel, s.index, path)

	for i, out := range outs {
		next := m
		// A stage may change the message that it was given, once nothing can fail any more but those behind it.
		if i < len(outs)-1 || d == deedLate || h%2 == 0 {
			next = m.Clone()
		}

		next.SetProp(propPath, out)

		if err := emit(next); err != nil {
			return err
		}
	}

	if d == deedLate {
		w.fail(c, b.blame, plainly)

		return errDeed
	}

	return nil
}

// gather is one lane's instance of a gather stage.
type gather struct {
	p       *proc
	channel int
}

var _ pipeline.BatchTransform = (*gather)(nil)

func (g *gather) TransformBatch(ctx context.Context, batch []*pipeline.Message, emit pipeline.Emit) error {
	w := g.p.w
	spec := &w.spec.channels[g.channel]
	parts, all := w.unfold(g.p, batch)
	c := w.begin(ctx, g.p, g.channel, endOf, batch[0].Key, all)
	defer w.end(c)

	d, h := w.draw(g.channel, endOf, pathOf(batch[0]))
	if err := w.do(c, d, h); err != nil {
		return err
	}

	failures := w.failSome(c, batch, parts)
	good := bundle{}

	for i, part := range parts {
		if failures.Failed[i] == nil {
			good.credit = append(good.credit, part.credit...)
			good.blame = append(good.blame, part.blame...)
		}
	}

	for i, m := range batch {
		if failures.Failed[i] != nil || spec.gather == gatherNone || spec.gather == gatherOne && len(good.blame) == 0 {
			continue
		}

		of := bundle{credit: parts[i].credit, blame: good.blame}
		if spec.gather == gatherOne {
			of.credit = good.credit
		}

		if err := emit(w.gatheredMessage(m, of)); err != nil {
			return err
		}

		if spec.gather == gatherOne {
			break
		}
	}

	if spec.gather == gatherNone && w.end(c) {
		w.reach(g.channel, good.credit)
	}

	return failures.Err()
}

// gatheredMessage makes a message that stands for others.
func (w *world) gatheredMessage(m *pipeline.Message, of bundle) *pipeline.Message {
	w.mu.Lock()
	defer w.mu.Unlock()

	id := fmt.Sprintf("g%d", len(w.gathered))
	w.gathered[id] = of

	return &pipeline.Message{ID: id, Key: m.Key, Body: m.Body, Origin: m.Origin}
}

// unfold returns what each message of a batch stands for, and what all of them do.
func (w *world) unfold(p *proc, batch []*pipeline.Message) (parts []bundle, all bundle) {
	for _, m := range batch {
		b := w.refs(p, m)
		parts = append(parts, b)
		all.credit = append(all.credit, b.credit...)
		all.blame = append(all.blame, b.blame...)
	}

	return parts, all
}

// failSome fails some messages of a batch, each for itself.
func (w *world) failSome(c *call, batch []*pipeline.Message, parts []bundle) *pipeline.BatchError {
	failures := &pipeline.BatchError{}

	if !w.faulty.Load() {
		return failures
	}

	for i, m := range batch {
		w.mu.Lock()
		w.draws[m.ID]++
		turn := w.draws[m.ID]
		w.mu.Unlock()

		h := w.hash("some", c.channel, pathOf(m), turn)
		if float64(h%1000) >= w.spec.mood.partial*1000 {
			continue
		}

		switch h >> 10 % 4 {
		case 0:
			w.fail(c, parts[i].blame, rejecting)
			failures.Fail(i, pipeline.Reject(errDeed))
		case 1:
			w.fail(c, parts[i].blame, plainly)
			failures.Fail(i, pipeline.RetryAfter(errDeed, time.Duration(h>>12%2000)*time.Millisecond))
		default:
			w.fail(c, parts[i].blame, plainly)
			failures.Fail(i, errDeed)
		}
	}

	return failures
}

// sink is a channel's sink, in one process.
type sink struct {
	p       *proc
	channel int
}

var _ pipeline.Sink = (*sink)(nil)

func (s *sink) Write(ctx context.Context, batch []*pipeline.Message) error {
	w := s.p.w
	parts, all := w.unfold(s.p, batch)
	c := w.begin(ctx, s.p, s.channel, endOf, batch[0].Key, all)
	defer w.end(c)

	d, h := w.draw(s.channel, endOf, pathOf(batch[0]))
	if err := w.do(c, d, h); err != nil {
		return err
	}

	failures := w.failSome(c, batch, parts)

	heard := w.end(c)
	w.noteWrite(s.p, s.channel, parts, failures, heard)

	if !heard {
		return failures.Err()
	}

	for i, part := range parts {
		if failures.Failed[i] == nil {
			w.reach(s.channel, part.credit)
			w.wrote(s.channel, batch[i], part.credit)
		}
	}

	return failures.Err()
}

// noteWrite writes a line of the trace about a write.
func (w *world) noteWrite(p *proc, channel int, parts []bundle, failures *pipeline.BatchError, heard bool) {
	w.mu.Lock()
	defer w.mu.Unlock()

	var line strings.Builder

	for i, part := range parts {
		for _, r := range part.credit {
			fmt.Fprintf(&line, " %s@%s:%d", r.path, r.queue, r.offset)
		}

		if err := failures.Failed[i]; err != nil {
			fmt.Fprintf(&line, " failed: %v;", err)
		}
	}

	w.notef("%s: writes to %s, heard %v:%s", p.name, w.spec.channels[channel].name, heard, line.String())
}

// wrote notes the order in which an ordered sink has accepted messages.
func (w *world) wrote(channel int, m *pipeline.Message, of []ref) {
	if w.spec.channels[channel].order == pipeline.OrderNone {
		return
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	for _, r := range of {
		s := orderSlot{channel: channel, stage: endOf, member: r.member, key: w.orderKey(channel, m.Key), lease: r.lease()}
		if w.lastWrite[s] == nil {
			w.lastWrite[s] = make(map[pipeline.Offset]int)
		}

		w.writes++
		w.lastWrite[s][r.offset] = w.writes
	}
}
