package pluginstest

import (
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
)

// Test puts a plugin through the suite. A transform also goes through [pipelinetest.TestTransform], with what it makes of
// a good message as the case.
func Test(t *testing.T, s Subject) {
	t.Helper()

	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) { c.run(t, &s) })
	}

	if _, ok := s.New(t).(pipeline.Transform); ok {
		t.Run("is a transform", func(t *testing.T) { testTransform(t, &s) })
	}
}

// Fuzz calls the plugin with bodies that come from chance, beginning with [Seeds] and the subject's own.
func Fuzz(f *testing.F, s Subject) {
	f.Helper()

	for _, body := range s.bad() {
		f.Add(body)
	}

	f.Fuzz(func(t *testing.T, body []byte) {
		p, ok := start(t, &s)
		if !ok {
			return
		}
		defer p.stop()

		p.survives(body)
	})
}

type check struct {
	name string
	run  func(tb testing.TB, s *Subject)
}

func checks() []check {
	return []check{
		{checksOutcome, checkOutcome},
		{"lets a panic of the next stage through and works on", checkPanic},
		{"waits for a next stage that hangs only as long as the context lets it", checkHang},
		{"bears a slow next stage", checkSlow},
		{"stops when the next stage refuses, and works on", checkRefusal},
		{"makes nothing of nothing", checkNothing},
		{"takes many messages", checkMany},
		{"takes a huge body", checkHuge},
		{"loses nothing when its context has ended", checkCancelled},
		{"runs in several instances at once", checkInstances},
		{"leaves alone what it was given and what it has given away", checkOwnership},
		{"bears bodies that make no sense", checkBad},
		{"can be closed at any time and twice", checkClose},
		{"counts what it says", checkMetrics},
	}
}

const checksOutcome = "takes good messages"

func testTransform(t *testing.T, s *Subject) {
	t.Helper()

	p, ok := start(t, s)
	if !ok {
		return
	}

	m := s.good(0, 1)[0]

	outs, err := p.work(t.Context(), []*pipeline.Message{copyOf(m)})
	p.stop()

	if err != nil {
		t.Errorf("a good message: %v", err)

		return
	}

	c := pipelinetest.Case{Name: "good", In: m, Want: outs}

	pipelinetest.TestTransform(t, func() (pipeline.Transform, error) {
		transform, _ := s.New(t).(pipeline.Transform)

		return transform, nil
	}, c)
}

func (s *Subject) bad() [][]byte { return append(Seeds(), s.Bad...) }
