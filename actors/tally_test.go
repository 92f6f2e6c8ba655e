package actors

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// blockOf returns a block of messages at the given offsets, of one byte each.
func blockOf(offsets ...pipeline.Offset) *block {
	messages := make([]*pipeline.Message, len(offsets))
	for i, o := range offsets {
		messages[i] = &pipeline.Message{Body: []byte("x"), Origin: pipeline.Origin{Offset: o, Delivery: 1}}
	}

	return newBlock(&slot{}, messages)
}

// runsOf returns the finished runs of a report as text.
func runsOf(r *report) []string {
	var runs []string
	for _, d := range r.runs {
		runs = append(runs, fmt.Sprintf("%d-%d %t", d.from, d.to, d.filtered))
	}

	return runs
}

func TestReportJoinsNeighboursWithOneFate(t *testing.T) {
	t.Parallel()

	b, r := blockOf(0, 1, 2, 3, 4, 5, 6), newReport()

	for _, i := range []int{0, 1, 2} {
		r.finish(&b.tallies[i], true)
	}

	r.finish(&b.tallies[3], false)
	r.finish(&b.tallies[5], true)
	r.finish(&b.tallies[6], true)

	if want := []string{"0-3 false", "3-4 true", "5-7 false"}; !slices.Equal(runsOf(r), want) {
		t.Errorf("runs %v, want %v", runsOf(r), want)
	}
}

func TestTallyEndsWithItsLastDescendant(t *testing.T) {
	t.Parallel()

	b, r := blockOf(0), newReport()
	source := &b.tallies[0]

	source.add(2) // three messages of one
	r.finish(source, false)
	r.finish(source, true)

	if !r.empty() {
		t.Fatalf("reported before the last descendant: %v", runsOf(r))
	}

	r.finish(source, false)

	if want := []string{"0-1 false"}; !slices.Equal(runsOf(r), want) {
		t.Errorf("runs %v, want one that was written", runsOf(r))
	}

	if source.left.Load() != 1 {
		t.Errorf("a tally in the pool stands at %d, want 1", source.left.Load())
	}
}

func TestFailingDescendantFailsTheSourceAfterItsSiblings(t *testing.T) {
	t.Parallel()

	b, r := blockOf(0), newReport()
	source := &b.tallies[0]
	first := &pipeline.StageError{Stage: "first"}

	source.add(2)
	r.fail(source, first, 1)
	r.fail(source, &pipeline.StageError{Stage: "second"}, 3)

	if !r.empty() {
		t.Fatal("reported while a sibling runs")
	}

	r.finish(source, true)

	if len(r.runs) != 0 || len(r.ended) != 1 || r.ended[0] != source || source.failure.Load().err != first {
		t.Errorf("runs %v, ended %v, failure %+v", runsOf(r), r.ended, source.failure.Load())
	}
}

func TestJointTallyStandsForAllItsParents(t *testing.T) {
	t.Parallel()

	b, r := blockOf(0, 1, 2), newReport()
	b.tallies[1].add(1) // a part of it is elsewhere

	joint := newJoint([]*tally{&b.tallies[0], &b.tallies[1], &b.tallies[2]})
	joint.add(1)
	r.finish(joint, true)

	if !r.empty() {
		t.Fatal("reported before the last output of the batch")
	}

	if !joint.standsFor(&b.tallies[2]) || joint.record().offset != 0 {
		t.Error("a joint tally does not know whom it stands for")
	}

	r.finish(joint, false)

	if want := []string{"0-1 false", "2-3 false"}; !slices.Equal(runsOf(r), want) {
		t.Errorf("runs %v, want %v", runsOf(r), want)
	}

	r.fail(newJoint([]*tally{&b.tallies[1]}), &pipeline.StageError{Stage: "late"}, 2)

	if len(r.ended) != 1 || r.ended[0] != &b.tallies[1] || b.tallies[1].failure.Load().attempts != 2 {
		t.Errorf("ended %v", r.ended)
	}
}

func TestTallyIsReportedOnceByManyHolders(t *testing.T) {
	t.Parallel()

	for range 5000 { // it takes two holders at the same instant
		b := blockOf(0)
		source := &b.tallies[0]

		const holders = 8

		source.add(holders - 1)

		var (
			all     sync.WaitGroup
			reports [holders]report
		)

		for i := range holders {
			all.Go(func() { reports[i].finish(source, i == 3) })
		}

		all.Wait()

		var got []string
		for i := range reports {
			got = append(got, runsOf(&reports[i])...)
		}

		if !slices.Equal(got, []string{"0-1 false"}) {
			t.Fatalf("reported %v, want once and written", got)
		}

		if left := source.left.Load(); left != 1 {
			t.Fatalf("a tally in the pool stands at %d, want 1", left)
		}
	}
}

func TestBlockRunsFollowItsOffsets(t *testing.T) {
	t.Parallel()

	b := blockOf(3, 4, 5, 9, 10, 40)

	var got []consumer.Run

	b.runs(1, 6, func(r consumer.Run, bytes int64) {
		if bytes != r.Len() {
			t.Errorf("run %v weighs %d", r, bytes)
		}

		got = append(got, r)
	})

	if want := []consumer.Run{{From: 4, To: 6}, {From: 9, To: 11}, {From: 40, To: 41}}; !slices.Equal(got, want) {
		t.Errorf("runs %v, want %v", got, want)
	}
}

// A block that comes out of the pool is like a new one, whatever its last use left behind.
func TestBlockFromThePoolIsClean(t *testing.T) {
	t.Parallel()

	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))

	for range 200 {
		n := 1 + rnd.IntN(blockSize)

		offsets := make([]pipeline.Offset, n)
		for i := range offsets {
			offsets[i] = pipeline.Offset(i * 2)
		}

		b := blockOf(offsets...)

		for i := range n {
			source := &b.tallies[i]
			if source.left.Load() != 1 || source.flags.Load() != 0 || source.failure.Load() != nil || source.index != int32(i) || source.block != b {
				t.Fatalf("seed %d: tally %d is %+v", seed, i, source)
			}

			if rec := b.records[i]; rec.offset != offsets[i] || b.bytes(i, i+1) != 1 || rec.delivery != 1 {
				t.Fatalf("seed %d: record %d is %+v", seed, i, rec)
			}
		}

		r := newReport()

		for i := range n {
			source := &b.tallies[i]
			if rnd.IntN(3) == 0 {
				source.add(1)
				r.fail(source, &pipeline.StageError{}, 1)
			}

			r.finish(source, true)
		}

		r.release()
		b.release()
	}
}

func TestSpoiledBlockIsNotUsedAgain(t *testing.T) {
	t.Parallel()

	b := blockOf(0, 1)
	joint := newJoint([]*tally{newJoint([]*tally{&b.tallies[1]})})

	spoil(joint)

	if !b.spoiled {
		t.Fatal("the block behind a joint tally may still be used again")
	}

	b.release()

	if b.slot == nil || b.records[1].offset != 1 {
		t.Error("a spoiled block was cleared for its next use")
	}
}
