package rocketmq_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
	"github.com/millrace/millrace/pipeline"
)

// TestSeedsOverTheWire runs jobs with our client against a RocketMQ in memory that a seed has misbehave, in virtual time, and
// checks what docs/guarantees.md says. MILLRACE_WIRE_SEEDS=1000 makes 1,000 runs; MILLRACE_SEED=42 makes the run of one seed
// again and prints its course.
func TestSeedsOverTheWire(t *testing.T) {
	t.Parallel()

	runs, base, loud := 12, rand.Uint64N(1<<40), false

	for name, to := range map[string]func(n uint64){
		"MILLRACE_WIRE_SEEDS": func(n uint64) { runs = int(n) },
		"MILLRACE_SEED":       func(n uint64) { runs, base, loud = 1, n, true },
	} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}

			to(n)
		}
	}

	for i := range uint64(runs) {
		t.Run(strconv.FormatUint(base+i, 10), func(t *testing.T) {
			t.Parallel()

			c := playSeed(t, base+i, &consumertest.Around{}, &consumertest.Around{})
			if loud {
				t.Logf("%s\n%s", c, strings.Join(c.trace, "\n"))

				for _, e := range c.logs.All() {
					t.Logf("%14s  %s %v", e.Time.Sub(c.began), e.Message, e.ContextMap())
				}
			}

			if broken := c.verdict(); len(broken) > 0 {
				t.Errorf("%s\nonce more: MILLRACE_SEED=%d go test ./consumer/rocketmq -run '^TestSeedsOverTheWire$' -v",
					strings.Join(broken, "\n"), base+i)
			}
		})
	}
}

// course is one seeded run: trouble, then peace, then a clean stop and a start that finds nothing to do.
type course struct {
	*world
	*ledger

	rnd     *rand.Rand
	client  rocketmq.Options
	options actors.Options
	lanes   int
	batch   pipeline.Batch
	queues  int
	// lies: brokers answer with offsets that nobody has stored. crashes: they forget some.
	lies, crashes bool
	faults        rocketmqfake.Faults
	procs         map[string]*process
	ending        sync.WaitGroup
	sent          int
	// above and below make mistakes as the runtime and the client would, so that the ledger sees them or does not.
	above, below *consumertest.Around
}

func (c *course) String() string {
	return fmt.Sprintf("%d queues of %d brokers, orderly %v, offsets only %v, lies %v, crashes %v, %d lanes, %+v, %+v", c.queues,
		len(c.fake.Brokers), c.client.Orderly, c.client.OffsetsOnly, c.lies, c.crashes, c.lanes, c.batch, c.options)
}

// playSeed makes the run of a seed. What it returns has seen all of it.
func playSeed(t *testing.T, seed uint64, above, below *consumertest.Around) *course {
	t.Helper()

	rnd := rand.New(rand.NewPCG(seed, 1))
	o := rocketmq.Options{Orderly: rnd.IntN(3) == 0, OffsetsOnly: rnd.IntN(4) == 0, Circle: rnd.IntN(4) == 0}

	var c *course

	inBubble(t, rocketmqfake.Options{Brokers: 1 + rnd.IntN(2), Seed: seed}, o, func(w *world) {
		c = &course{world: w, rnd: rnd, client: w.options, procs: map[string]*process{}, above: above, below: below}
		c.draw()
		c.play()
	})

	return c
}

// draw draws the job, and what its brokers are capable of.
func (c *course) draw() {
	c.lanes, c.queues = 1+c.rnd.IntN(3), 1+c.rnd.IntN(4)
	c.lies, c.crashes = c.rnd.IntN(3) == 0, c.rnd.IntN(3) == 0
	c.ledger = newLedger(c.lies || c.crashes)
	c.options = actors.Options{
		CommitEvery: c.upTo(8 * time.Second), RevokeBudget: c.upTo(6 * time.Second), DrainBudget: c.upTo(20 * time.Second),
		Limits: consumer.Limits{Messages: 1 + c.rnd.IntN(60), Bytes: 1 << 20, Span: int64(1 + c.rnd.IntN(200))},
	}

	if c.rnd.IntN(2) == 0 {
		c.batch = pipeline.Batch{Messages: 1 + c.rnd.IntN(10), Every: c.upTo(2 * time.Second)}
	}
}
