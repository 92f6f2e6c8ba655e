package actorstest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// Build makes the job that is tried. It is called for each process of it, inside of the bubble, so that each has sinks of its
// own; Env.Publisher is the broker in memory. (*jobfile.Job).Build is one.
type Build func(env plugins.Env) (pipeline.Job, error)

// Plan says how a job is tried. The zero value is twenty runs of a hundred messages each.
type Plan struct {
	// Seed is that of the first run, the next ones count on; 0 means any, and MILLRACE_SEED means a single run of that one,
	// with its course told.
	Seed uint64
	// Runs is how many runs there are; 0 means 20.
	Runs int
	// Messages is how many messages are published in a run; 0 means 100.
	Messages int
	// Message makes the nth message, from 0; nil means {"n":0} and so on, with a few keys. An empty ID is replaced, and IDs
	// must differ. Its Topic is where it goes, the first of the job's when it is none of them. It is called by one goroutine.
	Message func(n int) *pipeline.Message
	// Topics are more topics that the broker is to have, such as those that sinks write to.
	Topics []string
	// Processes is how many processes of the job run at a time, at most; 0 means 3. With 1 a killed process has ended
	// before the next one starts, for sinks that bear no other beside them.
	Processes int
	// Options are those that the job runs with. What is zero of Limits, CommitEvery, RevokeBudget and DrainBudget is drawn.
	Options actors.Options
	// Patience is how long a run may take, in virtual time, to finish everything when input and faults have stopped; 0 means
	// 15 minutes.
	Patience time.Duration
	// Check is called at the end of each run that has broken no rule, with what has become of the messages. Nil checks no more.
	Check func(t *testing.T, r *Result)
}

const (
	defaultRuns      = 20
	defaultMessages  = 100
	defaultProcesses = 3
	defaultPatience  = 15 * time.Minute
)

func (p Plan) withDefaults() Plan {
	if p.Runs == 0 {
		p.Runs = defaultRuns
	}

	if p.Seed == 0 {
		const few = 1 << 40 // so that it is easily typed

		p.Seed = 1 + rand.Uint64N(few)
	}

	if p.Messages == 0 {
		p.Messages = defaultMessages
	}

	if p.Processes == 0 {
		p.Processes = defaultProcesses
	}

	if p.Patience == 0 {
		p.Patience = defaultPatience
	}

	if p.Message == nil {
		p.Message = func(n int) *pipeline.Message {
			const keys = 7

			return &pipeline.Message{Key: fmt.Sprintf("k%d", n%keys), Body: fmt.Appendf(nil, `{"n":%d}`, n)}
		}
	}

	return p
}

// Run tries a job under the faults of a plan, each run in a subtest that is named by its seed, and fails where a rule of
// docs/guarantees.md was broken. Subtests run in parallel.
func Run(t *testing.T, build Build, plan Plan) {
	t.Helper()

	plan = plan.withDefaults()
	loud := false

	if one := os.Getenv("MILLRACE_SEED"); one != "" {
		seed, err := strconv.ParseUint(one, 10, 64)
		if err != nil {
			t.Fatalf("actorstest: MILLRACE_SEED: %v", err)
		}

		plan.Seed, plan.Runs, loud = seed, 1, true
	}

	for i := range plan.Runs {
		seed := plan.Seed + uint64(i)

		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) { try(t, build, plan, seed, loud) })
		})
	}
}

// try makes one run.
func try(t *testing.T, build Build, plan Plan, seed uint64, loud bool) {
	t.Helper()

	c := newCourse(t, build, plan, seed, nil)
	c.play()

	c.mu.Lock()
	defer c.mu.Unlock()

	if loud {
		for _, l := range c.trace {
			t.Log(l)
		}
	}

	if verdict := c.verdict(); verdict != "" {
		t.Errorf("%s\nonce more: MILLRACE_SEED=%d go test -run '%s' -v", verdict, seed, t.Name())

		return
	}

	if plan.Check != nil {
		plan.Check(t, c.result())
	}

	if t.Failed() {
		t.Logf("once more: MILLRACE_SEED=%d go test -run '%s' -v", seed, t.Name())
	}
}
