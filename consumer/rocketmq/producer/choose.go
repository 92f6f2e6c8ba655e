package producer

import (
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

// avoidFor is how long a broker that failed is passed over where there is another; a guess.
const avoidFor = 10 * time.Second

// chooser decides which queue a message goes to. It is safe for concurrent use.
type chooser struct {
	turn atomic.Uint64

	mu  sync.Mutex
	ill map[string]time.Time // brokers that failed, and until when they are passed over
}

func newChooser() *chooser { return &chooser{ill: map[string]time.Time{}} }

// choose returns a queue of the route: the one of the key, or the next in turn, preferably at a broker that has failed neither
// just now nor at this message. It reports false when there is no queue to write to.
func (c *chooser) choose(route *routes.Route, key string, failed map[string]bool) (pipeline.Queue, bool) {
	queues := route.Writable
	if len(queues) == 0 {
		return pipeline.Queue{}, false
	}

	if key != "" {
		return queues[queueOf(key, len(queues))], true
	}

	first := int(c.turn.Add(1) % uint64(len(queues)))
	best, rank := queues[first], c.rank(queues[first].Broker, failed)

	for i := 1; i < len(queues) && rank > 0; i++ {
		q := queues[(first+i)%len(queues)]
		if q.Broker == best.Broker {
			continue
		}

		if r := c.rank(q.Broker, failed); r < rank {
			best, rank = q, r
		}
	}

	return best, true
}

// rank is 0 for a broker that nothing speaks against, and higher the worse it is.
func (c *chooser) rank(broker string, failed map[string]bool) int {
	if failed[broker] {
		return 2
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if until, ill := c.ill[broker]; ill {
		if time.Now().Before(until) {
			return 1
		}

		delete(c.ill, broker)
	}

	return 0
}

// avoid passes a broker over for a while.
func (c *chooser) avoid(broker string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.ill[broker] = time.Now().Add(avoidFor)
}

// queueOf returns which of n queues a key belongs to; the same for every producer, as long as the topic has n queues.
func queueOf(key string, n int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))

	return int(h.Sum64() % uint64(n))
}
