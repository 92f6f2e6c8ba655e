package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/millrace/millrace/pipeline"
)

func TestTroubleIsPickedByTheSeedAlone(t *testing.T) {
	t.Parallel()

	feed := feedOf(t, 2)
	all := options{seed: 4, poison: true, panics: true, hang: true}
	first, again := pickTrouble(all, feed), pickTrouble(all, feed)

	for name, sets := range map[string][3]set{
		"reject": {first.reject, again.reject}, "fail": {first.fail, again.fail},
		"panics": {first.panics, again.panics}, "hangs": {first.hangs, again.hangs},
	} {
		if !maps.Equal(sets[0], sets[1]) {
			t.Errorf("%s: %v, then %v", name, sets[0], sets[1])
		}
	}

	if got := pickTrouble(options{seed: 4, hang: true}, feed); !maps.Equal(got.hangs, first.hangs) || len(got.panics) > 0 {
		t.Errorf("-hang alone picks %v and panics %v, with others it picks %v", got.hangs, got.panics, first.hangs)
	}

	if other := pickTrouble(options{seed: 5, hang: true}, feed); maps.Equal(other.hangs, first.hangs) {
		t.Error("another seed picks the same")
	}

	ids := make(set)

	for _, s := range []set{first.reject, first.fail, first.panics, first.hangs} {
		for id := range s {
			ids[id] = true
		}
	}

	if len(first.reject) != 1 || len(ids) != poisoned+panicking+1 {
		t.Errorf("picked %v", slices.Sorted(maps.Keys(ids)))
	}

	for _, e := range feed {
		if ids[e.id] && e.class == "" {
			t.Errorf("%s is no earthquake", e.id)
		}
	}
}

func TestTroubleStrikesAtTheRightDelivery(t *testing.T) {
	t.Parallel()

	trouble := &trouble{
		reject: set{"r": true}, fail: set{"f": true}, panics: set{"p": true}, hangs: set{"h": true},
		forever: make(chan struct{}),
	}

	run := func(key string, delivery int) (passed bool, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = &pipeline.PanicError{Value: p}
			}
		}()

		m := &pipeline.Message{Key: key, Origin: pipeline.Origin{Delivery: delivery}}
		out, err := fused(t, trouble.transform)(m)

		return len(out) == 1, err
	}

	for _, c := range []struct {
		key      string
		delivery int
		passes   bool
		check    func(error) bool
	}{
		{"other", 1, true, func(err error) bool { return err == nil }},
		{"r", 1, false, pipeline.IsRejected},
		{"f", 1, false, func(err error) bool { return errors.Is(err, errPoisoned) && !pipeline.IsRejected(err) }},
		{"f", 2, false, func(err error) bool { return errors.Is(err, errPoisoned) }},
		{"p", 1, false, func(err error) bool { _, ok := errors.AsType[*pipeline.PanicError](err); return ok }},
		{"p", 2, true, func(err error) bool { return err == nil }},
		{"h", 2, true, func(err error) bool { return err == nil }},
	} {
		if passed, err := run(c.key, c.delivery); passed != c.passes || !c.check(err) {
			t.Errorf("%s at delivery %d: passed %t, %v", c.key, c.delivery, passed, err)
		}
	}
}

func TestHangingIgnoresTheContext(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		trouble := &trouble{hangs: set{"h": true}, forever: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		returned := make(chan error, 1)

		go func() {
			returned <- trouble.transform(ctx, &pipeline.Message{Key: "h"}, nil)
		}()

		cancel()
		synctest.Wait()

		select {
		case err := <-returned:
			t.Errorf("it returned %v", err)
		default:
		}

		close(trouble.forever)

		if err := <-returned; err == nil {
			t.Error("it returned no error in the end")
		}
	})
}

func TestSlowHeedsTheContext(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	err := (&trouble{slow: true}).transform(ctx, &pipeline.Message{}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it returned %v", err)
	}
}
