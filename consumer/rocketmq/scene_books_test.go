package rocketmq_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// balances says what was done again, and holds that against the bounds. It returns how much no death of a member and no crash of
// the broker explains.
func (s *scene) balances() int {
	s.Helper()

	const changes = "a change of members"

	books := s.read()
	repeats := map[string]int{}
	after := map[*sceneMember]int{}

	for place, writes := range books.byPlace() {
		for i := 1; i < len(writes); i++ {
			first, again := writes[i-1], writes[i]
			queue := place[:strings.LastIndexByte(place, ' ')]

			switch {
			case first.by.held[queue] && again.at >= first.by.endedAt:
				after[first.by]++
			case !s.crashed.IsZero() && again.at >= s.crashed.UnixMilli():
				repeats["the broker's crash"]++
			default:
				repeats[changes]++
			}
		}
	}

	s.boundsHold(books, after)
	s.Logf("%d messages were published, %d writes and %d dead letters noted; done again because of: %v",
		len(s.published), len(books.writes), books.dead, repeats)

	if end := s.ask(remoting.GetMaxOffset, consumer.DeadLetterTopic(sceneGroup), 0); cmp.Compare(end, "0") <= 0 {
		s.Errorf("the dead letters end at %s", end)
	}

	return repeats[changes]
}

// boundsHold fails the test where more was done again after the end of a member than its end may cost.
func (s *scene) boundsHold(books *sceneBooks, after map[*sceneMember]int) {
	s.Helper()

	var (
		costs  []int
		tenths [11]int // kills by their repeats as a share of their bound
	)

	for _, m := range s.members {
		switch bound := books.since[m] + sceneInFlight*len(m.held); {
		case m.killed && after[m] > bound:
			s.Errorf("%d messages were done again after member %d was killed; the bound is %d", after[m], m.number, bound)
		case m.killed:
			costs = append(costs, after[m])
			tenths[10*after[m]/max(bound, 1)]++
		case m.ended && after[m] > 0:
			s.Errorf("%d messages were done again after member %d had left in order", after[m], m.number)
		}
	}

	slices.Sort(costs)

	if len(costs) > 0 {
		s.Logf("repeats a kill, of %d kills: median %d, p90 %d, most %d; by their share of the bound, in tenths: %v",
			len(costs), costs[len(costs)/2], costs[len(costs)*9/10], costs[len(costs)-1], tenths)
	}
}

// sceneWrite is one write of a sink.
type sceneWrite struct {
	at    int64
	by    *sceneMember
	place string
}

// sceneBooks are what all ledgers say together.
type sceneBooks struct {
	writes []sceneWrite
	done   map[string]bool // bodies that were written, or rejected and dead-lettered
	dead   int
	since  map[*sceneMember]int // writes since the last but one checkpoint of each queue
}

func (b *sceneBooks) byPlace() map[string][]sceneWrite {
	places := map[string][]sceneWrite{}

	for _, w := range b.writes {
		places[w.place] = append(places[w.place], w)
	}

	return places
}

// read reads all ledgers.
func (s *scene) read() *sceneBooks {
	s.Helper()

	b := &sceneBooks{done: map[string]bool{}, since: map[*sceneMember]int{}}

	for _, m := range s.members {
		text, err := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("ledger-%d", m.number)))
		if err != nil && !os.IsNotExist(err) {
			s.Fatal(err)
		}

		m.addTo(b, string(text))
	}

	return b
}

// addTo adds what a member's ledger says to the books.
func (m *sceneMember) addTo(b *sceneBooks, text string) {
	counts, last := map[string]int{}, map[string]int{} // writes of a queue since its last but one checkpoint, and its last

	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 4 || words[len(words)-1] != "." {
			continue // torn by the kill
		}

		switch words[1] {
		case "W":
			at, _ := strconv.ParseInt(words[0], 10, 64)
			b.writes = append(b.writes, sceneWrite{at: at, by: m, place: words[3] + " " + words[4]})
			b.done[words[2]] = true
			counts[words[3]]++
			last[words[3]]++
		case "D":
			b.done[words[2]] = true
			b.dead++
		case "C":
			counts[words[2]], last[words[2]] = last[words[2]], 0
		}
	}

	for _, n := range counts {
		b.since[m] += n
	}
}
