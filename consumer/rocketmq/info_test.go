package rocketmq_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
)

// A member that has begun where another one has left, and has nothing to do, says so: mqadmin would take it for blocked else.
func TestMemberWithNothingToDoSaysSo(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		w.publish("1", "2", "3")

		before := w.join(consumer.Subscription{})

		if err := before.Commit(w.Context(), before.owned(first()), consumer.Checkpoint{Next: 3}); err != nil {
			w.Fatal(err)
		}

		if err := before.Leave(w.Context()); err != nil {
			w.Fatal(err)
		}

		r := w.join(consumer.Subscription{})
		if _, err := r.Pull(w.Context(), r.owned(first()), 3, some()); err != nil {
			w.Fatal(err)
		}

		said := w.relayed(remoting.GetRunningInfo, nil)
		if !strings.Contains(said, `"commitOffset":3,"cachedMsgMinOffset":0,"cachedMsgMaxOffset":0,"cachedMsgCount":0`) {
			w.Errorf("it says %s", said)
		}
	})
}
