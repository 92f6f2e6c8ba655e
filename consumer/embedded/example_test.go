package embedded_test

import (
	"context"
	"fmt"
	"os"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/embedded"
	"github.com/millrace/millrace/pipeline"
)

// A broker in a directory, with one message that is published, pulled and committed.
func Example() {
	dir, err := os.MkdirTemp("", "broker")
	if err != nil {
		fmt.Println(err)

		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	if err := once(context.Background(), dir); err != nil {
		fmt.Println(err)
	}

	// Output: greetings/0 0: hello
}

func once(ctx context.Context, dir string) (err error) {
	broker, err := embedded.Open(embedded.Options{Dir: dir})
	if err != nil {
		return err
	}

	defer func() {
		if closing := broker.Close(); err == nil {
			err = closing
		}
	}()

	if err := broker.CreateTopic(ctx, "greetings", 1); err != nil {
		return err
	}

	if err := broker.Publish(ctx, "greetings", []*pipeline.Message{{Body: []byte("hello")}}); err != nil {
		return err
	}

	member, err := broker.Join(ctx, consumer.Subscription{Group: "readers", Topics: []string{"greetings"}})
	if err != nil {
		return err
	}

	assignment, err := member.Assigned(ctx, 0)
	if err != nil {
		return err
	}

	lease := assignment.Leases[len(assignment.Leases)-1] // behind the one of the retry topic

	batch, err := member.Pull(ctx, lease, 0, consumer.Limit{Messages: 10, Bytes: 1 << 20})
	if err != nil {
		return err
	}

	for _, m := range batch.Messages {
		fmt.Printf("%s %d: %s\n", m.Origin.Queue, m.Origin.Offset, m.Body)
	}

	if err := member.Commit(ctx, lease, consumer.Checkpoint{Next: batch.Next}); err != nil {
		return err
	}

	return member.Leave(ctx)
}
