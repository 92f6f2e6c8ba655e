package consumertest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/consumer"
)

// Bus is a broker that messages can be published to.
type Bus interface {
	consumer.Broker
	consumer.Publisher
}

// Harness is one broker under test. Its functions are called by one goroutine at a time; they report to t what fails.
type Harness struct {
	// Bus is the broker.
	Bus Bus
	// CreateTopic creates a topic with a number of queues. The suite makes up names that were never used before.
	CreateTopic func(t *testing.T, topic string, queues int)
	// Reopen ends the broker in order, opens it again on the same data, and returns the new one. It is called only with
	// Features.PersistsAcrossRestart, after every member has left.
	Reopen func(t *testing.T) Bus
}

// Factory makes the broker of one subtest and cleans it up with t.Cleanup. Subtests call it at the same time.
type Factory func(t *testing.T) Harness

// Features say what a broker can do beyond the contract, and what it needs. The zero value is the least able broker.
type Features struct {
	// VirtualTime: the broker works inside a testing/synctest bubble, where the suite then runs.
	VirtualTime bool
	// DenseOffsets: a queue's offsets start at 0 and grow by one with each message.
	DenseOffsets bool
	// HoldsBackQueues: a queue that was taken away from a member goes to the next only when it was released.
	HoldsBackQueues bool
	// RedeliveryIdempotent: to send back or dead-letter a message again makes no second copy.
	RedeliveryIdempotent bool
	// ReturnedIsFinished: what was sent back or dead-lettered is among the finished offsets that Stored tells, also when
	// the member died before its next commit.
	ReturnedIsFinished bool
	// TellsReturnedPlace: what was sent back says the queue and the offset that it was sent back from
	// (consumer.PropOriginQueue and PropOriginOffset). Dead letters say it everywhere.
	TellsReturnedPlace bool
	// PersistsAcrossRestart: Harness.Reopen works.
	PersistsAcrossRestart bool
	// Delay is the delay of redeliveries; 0 means 200 ms. It is the shortest that the broker keeps well.
	Delay time.Duration
	// Moment is how long the suite waits for something that must not happen, and how far apart it puts two times that the
	// broker must be able to tell from each other; 0 means 50 ms.
	Moment time.Duration
	// Patience is how long the suite waits for something that must happen; 0 means 30 s.
	Patience time.Duration
}

// Run runs the suite that every consumer.Broker must pass: a subtest for each guarantee, in parallel. It returns when its
// subtests are paused; they run when the calling test has returned.
func Run(t *testing.T, factory Factory, features Features) {
	t.Helper()

	for _, c := range suite() {
		t.Run(c.guarantee, func(t *testing.T) {
			t.Parallel()

			if c.needs != nil && !c.needs(features) {
				t.Skip("the broker does not have the feature")
			}

			test := func(t *testing.T) { c.test(newWorld(t, factory(t), features)) }

			if features.VirtualTime {
				synctest.Test(t, test)
			} else {
				test(t)
			}
		})
	}
}

// guarantee is one subtest.
type guarantee struct {
	guarantee string
	// needs says whether a broker must pass; nil means that every broker must.
	needs func(Features) bool
	test  func(*world)
}

func suite() []guarantee {
	var all []guarantee

	for _, part := range [][]guarantee{
		publishing(), pulling(), starting(), committing(), sharing(), returning(), reopening(),
	} {
		all = append(all, part...)
	}

	return all
}
