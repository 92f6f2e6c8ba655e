package producer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

func TestBrokersThatFailedAreTheLastChoice(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		route := &routes.Route{}

		for _, broker := range []string{"a", "b", "c"} {
			for id := range 2 {
				route.Writable = append(route.Writable, pipeline.Queue{Topic: "T", Broker: broker, ID: id})
			}
		}

		c := newChooser()

		chosen := func(failed map[string]bool) map[string]int {
			counts := map[string]int{}

			for range 12 {
				q, ok := c.choose(route, "", failed)
				if !ok {
					t.Error("nothing is chosen")
				}

				counts[q.Broker]++
			}

			return counts
		}

		check := func(what string, got map[string]int, want ...string) {
			for _, broker := range want {
				if got[broker] == 0 || len(got) != len(want) {
					t.Errorf("%s: chosen are %v, want %v", what, got, want)
				}
			}
		}

		check("all are well", chosen(nil), "a", "b", "c")
		check("one failed at this message", chosen(map[string]bool{"a": true}), "b", "c")
		c.avoid("b")
		check("one failed at another", chosen(nil), "a", "c")
		check("both", chosen(map[string]bool{"a": true}), "c")
		check("better one that failed at another", chosen(map[string]bool{"a": true, "c": true}), "b")
		check("all failed", chosen(map[string]bool{"a": true, "b": true, "c": true}), "a", "b", "c")
		<-time.After(avoidFor)
		check("later", chosen(nil), "a", "b", "c")

		if q, ok := c.choose(&routes.Route{}, "", nil); ok {
			t.Errorf("of nothing %s is chosen", q)
		}
	})
}
