package embedded

import (
	"testing"

	"github.com/millrace/millrace/consumer/consumertest"
)

func TestBrokerKeepsTheContract(t *testing.T) {
	t.Parallel()

	consumertest.Run(t, func(t *testing.T) consumertest.Harness {
		t.Helper()

		o := Options{Dir: t.TempDir()}
		w := openWorld(t, o)

		return consumertest.Harness{
			Bus: w,
			CreateTopic: func(t *testing.T, topic string, queues int) {
				t.Helper()

				if err := w.CreateTopic(t.Context(), topic, queues); err != nil {
					t.Fatalf("CreateTopic: %v", err)
				}
			},
			Reopen: func(*testing.T) consumertest.Bus {
				w.reopen(o)

				return w
			},
		}
	}, consumertest.Features{
		DenseOffsets: true, HoldsBackQueues: true, RedeliveryIdempotent: true, ReturnedIsFinished: true, TellsReturnedPlace: true,
		PersistsAcrossRestart: true,
	})
}
