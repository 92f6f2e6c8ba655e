package pipeline_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/millrace/millrace/pipeline"
)

// length is a memo that knows how long a body is.
type length struct {
	of []byte
	n  int
}

func (l *length) Source() []byte { return l.of }

func TestAMemoHoldsForItsBodyOnly(t *testing.T) {
	t.Parallel()

	body := []byte("body")
	m := &pipeline.Message{Body: body}

	if m.Memo() != nil {
		t.Error("a new message has a memo")
	}

	memo := &length{of: body, n: 4}
	m.SetMemo(memo)

	clone := m.Clone()
	if m.Memo() != memo || clone.Memo() != memo {
		t.Errorf("memos %v and %v, want the one that was set", m.Memo(), clone.Memo())
	}

	for name, other := range map[string][]byte{
		"none": nil, "shorter": body[:3], "elsewhere": body[1:], "equal bytes": bytes.Clone(body),
	} {
		m.Body = other
		if m.Memo() != nil {
			t.Errorf("%s: the memo of another body", name)
		}
	}

	m.Body = body
	if m.Memo() != memo {
		t.Error("the first body has come back without its memo")
	}

	m.SetMemo(nil)

	if m.Memo() != nil || clone.Memo() != memo {
		t.Errorf("memos %v and %v, want none and the clone's", m.Memo(), clone.Memo())
	}
}

func ExampleMessage_Memo() {
	measure := func(m *pipeline.Message) int {
		if l, ok := m.Memo().(*length); ok {
			return l.n
		}

		l := &length{of: m.Body, n: len(m.Body)}
		m.SetMemo(l)

		return l.n
	}

	m := &pipeline.Message{Body: []byte("body")}
	fmt.Println(measure(m), measure(m), m.Memo() != nil)

	m.Body = []byte("another")
	fmt.Println(m.Memo() != nil, measure(m))
	// Output:
	// 4 4 true
	// false 7
}
