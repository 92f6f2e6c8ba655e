package actors_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// usurped is a broker whose queues belong to others as soon as it is told so.
type usurped struct {
	consumer.Broker

	now bool
}

func (u *usurped) Join(ctx context.Context, s consumer.Subscription) (consumer.Member, error) {
	m, err := u.Broker.Join(ctx, s)

	return &usurpedMember{Member: m, u: u}, err
}

type usurpedMember struct {
	consumer.Member

	u *usurped
}

func (m *usurpedMember) Commit(ctx context.Context, l consumer.Lease, c consumer.Checkpoint) error {
	if m.u.now {
		return consumer.ErrNotOwner
	}

	return m.Member.Commit(ctx, l, c)
}

// A queue's last commit comes after its next owner has begun: an end is clean when the commit would have said nothing new.
func TestQueueLostAtTheEndCostsRepeatsOnlyOfWhatIsNotStored(t *testing.T) {
	t.Parallel()

	for _, stored := range []bool{true, false} {
		t.Run(fmt.Sprintf("stored %t", stored), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGround(t, 1)
				broker := &usurped{Broker: g.Broker}

				r, err := actors.Start(job(pipeline.Channel{Name: "work", Sink: &shelf{}}), broker, actors.Options{})
				if err != nil {
					t.Fatal(err)
				}

				g.publish(0, 50)

				for g.committed(0) != 50 {
					pass(time.Second)
				}

				if !stored {
					g.publish(50, 60)
				}

				pass(time.Millisecond) // less than until a commit is due
				synctest.Wait()

				broker.now = true

				if report := r.Drain(time.Minute); report.Clean != stored || (report.Err == nil) != stored || report.UnfinishedCount != 0 {
					t.Errorf("the job ended with %+v", report)
				}
			})
		})
	}
}
