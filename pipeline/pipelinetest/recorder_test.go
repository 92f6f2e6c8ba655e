package pipelinetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline"
)

func TestRecorderTakesAndRefuses(t *testing.T) {
	t.Parallel()

	r := Recorder{Err: errOther, After: 2}
	answers := make([]error, 0, 4)

	for _, m := range Messages("a", "b", "c", "d") {
		answers = append(answers, r.Emit(m))
	}

	if got, want := fmt.Sprint(answers), "[<nil> <nil> something else something else]"; got != want {
		t.Errorf("answers %s, want %s", got, want)
	}

	if got := bodies(r.Messages...); strings.Join(got, "") != "ab" || r.Refused != 2 {
		t.Errorf("took %q and refused %d, want a, b and 2", got, r.Refused)
	}

	var all Recorder
	if err := all.Emit(nil); !errors.Is(err, errNil) || len(all.Messages) != 0 {
		t.Errorf("a nil message: error %v, taken %d", err, len(all.Messages))
	}

	if err := all.Emit(Message("a")); err != nil || len(all.Messages) != 1 {
		t.Errorf("a message: error %v, taken %d", err, len(all.Messages))
	}
}

func TestMessagesFollowEachOther(t *testing.T) {
	t.Parallel()

	batch := Messages("a", "b")

	for i, m := range batch {
		if m.Origin.Offset != pipeline.Offset(i) || m.Origin.Delivery != 1 || m.Props != nil || m.Key != "" || m.Tag != "" {
			t.Errorf("message %d is %+v", i, m)
		}
	}

	if batch[0].ID == batch[1].ID || !batch[1].Born.After(batch[0].Born) || string(batch[1].Body) != "b" {
		t.Errorf("messages %s and %s", show(batch[0]), show(batch[1]))
	}
}
