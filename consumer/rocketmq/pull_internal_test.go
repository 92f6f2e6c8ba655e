package rocketmq

import (
	"strconv"
	"testing"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/pipeline"
)

// answered is the answer to a pull: 32 messages of 1 KiB, with properties as brokers and producers give them.
func answered(tb testing.TB, more string) (*member, *lease, pulled) {
	tb.Helper()

	decoder, err := record.NewDecoder(record.Limits{})
	if err != nil {
		tb.Fatal(err)
	}

	p := pulled{next: 32, end: 1000}

	for i := range int64(32) {
		r := record.Record{
			Topic: "T", Offset: i, Born: 1700000000000, Body: make([]byte, 1<<10),
			Props: record.Properties("UNIQ_KEY\x01AC1100017F0000010000000000" + strconv.FormatInt(100000+i, 10) +
				"\x02KEYS\x01k" + strconv.FormatInt(i, 10) + "\x02TAGS\x01t\x02WAIT\x01true\x02CLUSTER\x01C\x02" + more),
		}

		if p.body, err = r.Append(p.body); err != nil {
			tb.Fatal(err)
		}
	}

	m := &member{broker: &Broker{decoder: decoder}, retry: "%RETRY%G"}

	return m, newLease(consumer.Lease{Queue: pipeline.Queue{Topic: "T", Broker: "b"}, Epoch: 1}), p
}

// A message costs no allocation of its own on its way from the wire to the job, unless it has properties of its own.
func TestMessagesShareAllocations(t *testing.T) {
	for more, most := range map[string]float64{"": 0.25, "color\x01blue\x02": 2.25} {
		m, held, p := answered(t, more)

		allocs := testing.AllocsPerRun(100, func() {
			if b, _, err := m.batch(held, 0, consumer.Limit{Messages: 256, Bytes: 1 << 20}, p); err != nil || len(b.Messages) != 32 {
				t.Errorf("%d messages, %v", len(b.Messages), err)
			}
		})

		if allocs /= 32; allocs > most {
			t.Errorf("%v allocations a message with %q, at most %v", allocs, more, most)
		}
	}
}

func BenchmarkBatch(b *testing.B) {
	for _, more := range []string{"", "color\x01blue\x02"} {
		b.Run(strconv.Itoa(len(more)), func(b *testing.B) {
			m, held, p := answered(b, more)

			b.ReportAllocs()
			b.SetBytes(int64(len(p.body)))

			for b.Loop() {
				if _, _, err := m.batch(held, 0, consumer.Limit{Messages: 256, Bytes: 1 << 20}, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Where guesses go wrong again and again, ever fewer are made, and where most are right, many.
func TestWrongGuessesAreFew(t *testing.T) {
	t.Parallel()

	r := &reading{}

	for _, c := range []struct{ taken, careful int }{{0, 8}, {1, 16}, {63, 32}, {64, 8}, {2, 16}} {
		r.ahead = &ahead{taken: c.taken}
		r.guessedWrong()

		if r.careful != c.careful {
			t.Errorf("after %d answers and a wrong guess %d are asked for one by one, want %d", c.taken, r.careful, c.careful)
		}
	}

	for range 20 {
		r.guessedWrong()
	}

	if r.careful != maxCareful {
		t.Errorf("at the most %d are asked for one by one, want %d", r.careful, maxCareful)
	}
}
