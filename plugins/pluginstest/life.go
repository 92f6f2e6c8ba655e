package pluginstest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/millrace/millrace/pipeline"
)

// checkOwnership does what the runtime may do after a call: it uses the batch for something else, and the next stage
// changes what it got. What the plugin gave away must not change, not even by its next call.
func checkOwnership(tb testing.TB, s *Subject) {
	tb.Helper()

	p, ok := start(tb, s)
	if !ok {
		return
	}
	defer p.stop()

	_, sink := p.plugin.(pipeline.Sink)

	var outs, left []*pipeline.Message

	for round := range 3 {
		batch := s.good(10*round, 5)
		before := slices.Clone(batch)

		var wholes, bodies []*pipeline.Message
		for _, m := range batch {
			wholes, bodies = append(wholes, copyOf(m)), append(bodies, &pipeline.Message{Body: m.Body})
		}

		given := slices.Clone(batch)

		panicked, err := p.call(tb.Context(), given, func(m *pipeline.Message) error {
			m.Tag += " of the next stage"
			m.SetProp("pluginstest", m.Tag)
			outs, left = append(outs, m), append(left, copyOf(m))

			return nil
		})
		if err != nil || panicked != nil {
			tb.Errorf("good messages: %v, panic %v", err, panicked)
		}

		for i := range before {
			if !bytes.Equal(bodies[i].Body, wholes[i].Body) {
				tb.Errorf("the plugin wrote into the body of message %d", i)
			}

			if sink && (given[i] != before[i] || !same(before[i], wholes[i])) {
				tb.Errorf("the sink changed message %d of its batch", i)
			}
		}

		clear(given)
	}

	for i := range outs {
		if !same(outs[i], left[i]) {
			tb.Errorf("output %d changed after it was emitted, from\n\t%s to\n\t%s", i, show(left[i]), show(outs[i]))
		}
	}
}

func checkClose(tb testing.TB, s *Subject) {
	tb.Helper()

	// Never opened: the runtime closes what it has made when another part of the job does not open.
	if plugin := s.New(tb); plugin != nil {
		shut(tb, plugin, "Close before Open")
		shut(tb, plugin, "Close after Close")
	}

	p, ok := start(tb, s)
	if !ok {
		return
	}

	p.worksOn(s, 0)
	p.stop()
	shut(tb, p.plugin, "Close after Close")
}

// shut closes a plugin; an error is all right.
func shut(tb testing.TB, plugin any, call string) {
	tb.Helper()

	if closer, ok := plugin.(io.Closer); ok {
		if panicked, ok := bounded(tb, call, func() { _ = closer.Close() }); ok && panicked != nil {
			tb.Errorf("%s panicked: %v", call, panicked)
		}
	}
}

// checkMetrics reads the counts at any time, from another goroutine.
func checkMetrics(tb testing.TB, s *Subject) {
	tb.Helper()

	plugin := s.New(tb)

	meter, ok := plugin.(pipeline.Meter)
	if !ok {
		shut(tb, plugin, "Close")

		if len(s.Metrics) > 0 {
			tb.Errorf("the plugin says that it counts %q, but counts nothing", s.Metrics)
		}

		return
	}

	shut(tb, plugin, "Close")

	names := slices.Sorted(maps.Keys(meter.Meter()))
	if want := slices.Sorted(slices.Values(s.Metrics)); s.Metrics != nil && !slices.Equal(names, want) {
		tb.Errorf("the plugin counts %q and says that it counts %q", names, want)
	}

	p, ok := start(tb, s)
	if !ok {
		return
	}

	meter, _ = p.plugin.(pipeline.Meter)
	ended := make(chan struct{})

	var reader sync.WaitGroup

	reader.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				_ = meter.Meter()
			}
		}
	})

	p.worksOn(s, 0)
	close(ended)
	reader.Wait()
	p.stop()

	for name, n := range meter.Meter() {
		if n < 0 {
			tb.Errorf("%s is %d", name, n)
		}
	}
}

// copyOf shares nothing with m.
func copyOf(m *pipeline.Message) *pipeline.Message {
	c := m.Clone()
	c.Body = bytes.Clone(m.Body)

	return c
}

func same(a, b *pipeline.Message) bool {
	return a.ID == b.ID && a.Topic == b.Topic && a.Key == b.Key && a.Tag == b.Tag && bytes.Equal(a.Body, b.Body) &&
		maps.Equal(a.Props, b.Props) && a.Born.Equal(b.Born)
}

func show(m *pipeline.Message) string {
	return fmt.Sprintf("{id %q, key %q, tag %q, props %q, body %.100q}", m.ID, m.Key, m.Tag, m.Props, m.Body)
}
