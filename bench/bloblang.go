package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure" // the processors and outputs that bloblang.yaml names
	"github.com/redpanda-data/benthos/v4/public/service"
)

// bloblangWork is the work of json.yaml as Benthos does it best: batches of 256 in as many threads as there are lanes, through
// mutations, which need two thirds of the processor time that mappings do. Outputs count, and throw away.
const bloblangWork = `
logger: { level: NONE }
input:
  events: {}
pipeline:
  threads: 2
  processors:
    - mutation: |
        root = if this.mag < 2 { deleted() }
    - mutation: |
        root.severity = if this.mag >= 6 { "major" } else if this.mag >= 4 { "moderate" } else { "minor" }
        root.source = "feed"
        root.km = this.cdi * 1.609
        root.magnitude = this.mag
        root.mag = deleted()
        root.url = deleted()
output:
  switch:
    cases:
      - check: this.severity == "major"
        output: { tally: { major: true } }
      - output: { tally: { major: false } }
`

// batches is an input of Benthos: the same events.
type batches struct {
	events  [][]byte
	n       int
	next    atomic.Int64
	acked   atomic.Int64
	settled chan struct{}
}

func (b *batches) Connect(context.Context) error { return nil }
func (b *batches) Close(context.Context) error   { return nil }

func (b *batches) ReadBatch(context.Context) (service.MessageBatch, service.AckFunc, error) {
	at := int(b.next.Add(eventBatch) - eventBatch)
	if at >= b.n {
		return nil, nil, service.ErrEndOfInput
	}

	batch := make(service.MessageBatch, min(eventBatch, b.n-at))
	for i := range batch {
		batch[i] = service.NewMessage(b.events[(at+i)%len(b.events)])
	}

	return batch, func(_ context.Context, err error) error {
		if b.acked.Add(int64(len(batch))) == int64(b.n) {
			close(b.settled)
		}

		return err
	}, nil
}

// ends is an output of Benthos that counts.
type ends struct{ n *atomic.Int64 }

func (e ends) Connect(context.Context) error { return nil }
func (e ends) Close(context.Context) error   { return nil }

func (e ends) WriteBatch(_ context.Context, batch service.MessageBatch) error {
	for _, m := range batch {
		if _, err := m.AsBytes(); err != nil { // an output has to have the body
			return fmt.Errorf("body: %w", err)
		}
	}

	e.n.Add(int64(len(batch)))

	return nil
}

func jsonByBloblang(events [][]byte, n int, t *tally) (float64, error) {
	from := &batches{events: events, n: n, settled: make(chan struct{})}
	environment := service.NewEnvironment()

	err := environment.RegisterBatchInput("events", service.NewConfigSpec(),
		func(*service.ParsedConfig, *service.Resources) (service.BatchInput, error) {
			return service.InputBatchedWithMaxInFlight(16, from), nil
		})
	if err != nil {
		return 0, fmt.Errorf("input: %w", err)
	}

	err = environment.RegisterBatchOutput("tally", service.NewConfigSpec().Field(service.NewBoolField("major")),
		func(c *service.ParsedConfig, _ *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
			out := ends{&t.rest}
			if major, _ := c.FieldBool("major"); major {
				out = ends{&t.major}
			}

			return out, service.BatchPolicy{}, lanes, nil
		})
	if err != nil {
		return 0, fmt.Errorf("output: %w", err)
	}

	builder := environment.NewStreamBuilder()
	if err := builder.SetYAML(bloblangWork); err != nil {
		return 0, fmt.Errorf("config: %w", err)
	}

	s, err := builder.Build()
	if err != nil {
		return 0, fmt.Errorf("build: %w", err)
	}

	ended := make(chan error, 1)
	start := time.Now()

	go func() { ended <- s.Run(context.Background()) }()

	select {
	case <-from.settled:
	case err := <-ended:
		return 0, fmt.Errorf("it has ended: %w", err)
	}

	took := time.Since(start)

	if err := <-ended; err != nil {
		return 0, fmt.Errorf("run: %w", err)
	}

	return float64(n) / took.Seconds(), nil
}
