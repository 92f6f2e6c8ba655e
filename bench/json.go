package main

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/jobfile"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/document"
	"github.com/millrace/millrace/plugins/standard"
)

// What is promised of a job over JSON events of 1 KiB that is written as a file.
const (
	minJSON       = 300_000 // on two cores
	maxJSONTime   = 6.7     // microseconds, which are the same
	minOfHand     = 0.7
	minOfBloblang = 10
)

//go:embed json.yaml
var jsonJob []byte

// tally counts what gets to the two ends of the work, for all three ways to do it must come to the same.
type tally struct{ major, rest atomic.Int64 }

func (t *tally) String() string {
	return fmt.Sprintf("%d major, %d others", t.major.Load(), t.rest.Load())
}

// counter is a sink that counts and throws away.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(_ context.Context, batch []*pipeline.Message) error {
	c.n.Add(int64(len(batch)))

	return nil
}

// side is one way to do the work: what it does in n messages, and what processor time a message took in each round.
type side struct {
	do   func(events [][]byte, n int, t *tally) (float64, error)
	n    int
	took []float64 // in microseconds
}

// run runs one round and checks that it comes to what all others of as many messages have come to.
func (s *side) run(events [][]byte, want map[int]string) (float64, error) {
	t := new(tally)
	before := processorTime()

	rate, err := s.do(events, s.n, t)
	if err != nil {
		return 0, err
	}

	s.took = append(s.took, (processorTime()-before).Seconds()*1e6/float64(s.n))

	if known, ok := want[s.n]; ok && known != t.String() {
		return 0, fmt.Errorf("%s arrived, and before that it was %s", t, known)
	}

	want[s.n] = t.String()

	return rate, nil
}

// over returns the median of how many times the processor time of other the side needs, from neighbouring rounds.
func (s *side) over(other *side) float64 {
	ratios := make([]float64, len(s.took))
	for i := range ratios {
		ratios[i] = s.took[i] / other.took[i]
	}

	return median(ratios[1:]) // the first round warms up
}

// jsonWork runs the job of json.yaml, the same work by hand on the same document code, and the same in bloblang. What is promised
// about them is promised of processor time, which says the same on a machine that does other work too.
func jsonWork(o options) ([]line, error) {
	const fewer = 10 // messages for bloblang

	var (
		events   = newEvents()
		want     = make(map[int]string)
		ours     = &side{do: jsonThroughActors, n: o.messages / 4}
		hand     = &side{do: jsonByHand, n: o.messages / 4}
		again    = &side{do: jsonThroughActors, n: o.messages / 4 / fewer}
		bloblang = &side{do: jsonByBloblang, n: o.messages / 4 / fewer}
	)

	run := func(s *side) func() (float64, error) {
		return func() (float64, error) { return s.run(events, want) }
	}

	rate, handRate, _, err := turns(o.rounds, run(ours), run(hand))
	if err != nil {
		return nil, err
	}

	_, bloblangRate, _, err := turns(o.rounds, run(again), run(bloblang))
	if err != nil {
		return nil, err
	}

	return []line{
		newLine("json", "1 KiB events, a job file", rate, "msg/s").atLeast(minJSON),
		newLine("json", "the same by hand on the same documents", handRate, "msg/s"),
		newLine("json", "the same in bloblang", bloblangRate, "msg/s"),
		newLine("json", "processor time, a job file", median(ours.took[1:]), "us/msg").atMost(maxJSONTime),
		newLine("json", "processor time, by hand / job file", hand.over(ours), "").atLeast(minOfHand),
		newLine("json", "processor time, bloblang / job file", bloblang.over(again), "").atLeast(minOfBloblang),
	}, nil
}

func jsonThroughActors(events [][]byte, n int, t *tally) (float64, error) {
	var registry plugins.Registry
	if err := standard.Register(&registry); err != nil {
		return 0, fmt.Errorf("register: %w", err)
	}

	file, err := jobfile.Parse("json.yaml", jsonJob, &registry, jobfile.Variables{})
	if err != nil {
		return 0, fmt.Errorf("parse: %w", err)
	}

	job, err := file.Jobs[0].BuildWith(plugins.Env{}, func(use jobfile.SinkUse) pipeline.Sink {
		if use.Channel == "major" {
			return counter{&t.major}
		}

		return counter{&t.rest}
	})
	if err != nil {
		return 0, fmt.Errorf("build: %w", err)
	}

	from := newStream(events, n)
	start := time.Now()

	r, err := actors.Start(job, from, actors.Options{CommitEvery: 10 * time.Millisecond})
	if err != nil {
		return 0, fmt.Errorf("start: %w", err)
	}

	select {
	case <-from.done:
	case <-r.Stopped():
		return 0, fmt.Errorf("the job has stopped: %w", r.Report().Err)
	}

	took := time.Since(start)

	if report := r.Drain(0); report.Err != nil {
		return 0, report.Err
	}

	return float64(n) / took.Seconds(), nil
}

// jsonByHand does the work in two goroutines that take batches by turns, and keeps no books.
func jsonByHand(events [][]byte, n int, t *tally) (float64, error) {
	var (
		from  = newStream(events, n)
		next  atomic.Int64
		group sync.WaitGroup
		errs  = make(chan error, lanes)
	)

	start := time.Now()

	for range lanes {
		group.Go(func() {
			h, err := newHand()

			for err == nil {
				at := pipeline.Offset(next.Add(eventBatch) - eventBatch)
				if at >= from.end {
					break
				}

				for _, m := range from.batch(at, eventBatch) {
					if err = h.work(m, t); err != nil {
						break
					}
				}
			}

			errs <- err
		})
	}

	group.Wait()

	took := time.Since(start)

	for range lanes {
		if err := <-errs; err != nil {
			return 0, err
		}
	}

	return float64(n) / took.Seconds(), nil
}

const lanes = 2

// hand is the work as somebody would write it who has package document and nothing else.
type hand struct {
	mag, severity document.Path
	plan          *document.Plan
	values        [][]byte
	scratch       []byte
}

func newHand() (*hand, error) {
	plan, err := document.NewPlan(document.Changes{
		Set:    []document.Path{document.Name("severity"), document.Name("source"), document.Name("km")},
		Remove: []document.Path{document.Name("url")},
		Move:   map[string]document.Path{"mag": document.Name("magnitude")},
	})
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}

	return &hand{mag: document.Name("mag"), severity: document.Name("severity"), plan: plan, values: make([][]byte, 3)}, nil
}

func (h *hand) work(m *pipeline.Message, t *tally) error {
	d, err := document.Of(m)
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}

	mag, _ := d.Get(h.mag).Float()
	if mag < 2 {
		return nil
	}

	cdi, _ := d.Get(document.Name("cdi")).Float()

	switch {
	case mag >= 6:
		h.values[0] = []byte(`"major"`)
	case mag >= 4:
		h.values[0] = []byte(`"moderate"`)
	default:
		h.values[0] = []byte(`"minor"`)
	}

	h.values[1] = []byte(`"feed"`)
	h.scratch = strconv.AppendFloat(h.scratch[:0], cdi*1.609, 'f', -1, 64)
	h.values[2] = h.scratch

	next, err := h.plan.Apply(d, h.values)
	if err != nil {
		return fmt.Errorf("change: %w", err)
	}

	m.Body = next.Source()
	m.SetMemo(next)

	if next.Get(h.severity).Text() == "major" {
		t.major.Add(1)
	} else {
		t.rest.Add(1)
	}

	return nil
}
