package topic

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// shelf is a publisher that keeps what it gets.
type shelf struct {
	err    error
	topics []string
	kept   []pipeline.Message
}

var _ consumer.Publisher = (*shelf)(nil)

func (s *shelf) Publish(_ context.Context, topic string, messages []*pipeline.Message) error {
	if s.err != nil {
		return s.err
	}

	for _, m := range messages {
		s.topics = append(s.topics, topic)
		s.kept = append(s.kept, *m)
	}

	return nil
}

func setup(t *testing.T, s *shelf) *Sink {
	t.Helper()

	sink, err := New(s, Options{Name: "alerts"})
	if err != nil {
		t.Fatal(err)
	}

	return sink
}

func TestMessagesArePublishedAnew(t *testing.T) {
	t.Parallel()

	var s shelf

	redelivered := map[string]string{
		"unit": "mw", consumer.PropOriginTopic: "quakes", consumer.PropOriginID: "7", consumer.PropDeadError: "x",
	}
	batch := []*pipeline.Message{
		{ID: "1", Key: "k", Tag: "major", Body: []byte("a"), Props: map[string]string{"unit": "ml"}, Born: time.Now()},
		{ID: "2", Body: []byte("b"), Props: maps.Clone(redelivered), Born: time.Now()},
	}

	if err := setup(t, &s).Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}

	want := []pipeline.Message{
		{ID: "1", Key: "k", Tag: "major", Body: []byte("a"), Props: map[string]string{"unit": "ml"}},
		{ID: "2", Body: []byte("b"), Props: map[string]string{"unit": "mw"}},
	}

	if !reflect.DeepEqual(s.kept, want) {
		t.Errorf("published %+v, want %+v", s.kept, want)
	}

	if !reflect.DeepEqual(s.topics, []string{"alerts", "alerts"}) {
		t.Errorf("published to %v", s.topics)
	}

	if batch[1].Born.IsZero() || !maps.Equal(batch[1].Props, redelivered) {
		t.Errorf("the batch was changed to %+v; a retry would publish something else", batch[1])
	}
}

func TestARefusedBatchFailsAsAWhole(t *testing.T) {
	t.Parallel()

	refusal := &consumer.UnknownTopicError{Topic: "alerts"}
	err := setup(t, &shelf{err: refusal}).Write(t.Context(), []*pipeline.Message{{Body: []byte("a")}})

	if _, partial := errors.AsType[*pipeline.BatchError](err); partial || !errors.Is(err, refusal) {
		t.Errorf("the error is %v, want one that wraps the publisher's", err)
	}
}

func TestMessagesThatABrokerWillNeverTakeAreRejectedAlone(t *testing.T) {
	t.Parallel()

	var refusal pipeline.BatchError

	refusal.Fail(1, pipeline.Reject(errors.New("too large")))

	err := setup(t, &shelf{err: refusal.Err()}).Write(t.Context(), []*pipeline.Message{{Body: []byte("a")}, {Body: []byte("b")}})

	partial, ok := errors.AsType[*pipeline.BatchError](err)
	if !ok || len(partial.Failed) != 1 || !pipeline.IsRejected(partial.Failed[1]) {
		t.Errorf("the error is %v", err)
	}
}

func TestASinkNeedsAPublisherAndATopic(t *testing.T) {
	t.Parallel()

	if _, err := New(nil, Options{Name: "alerts"}); err == nil {
		t.Error("no publisher is no error")
	}

	if _, err := New(&shelf{}, Options{}); err == nil {
		t.Error("no topic is no error")
	}
}
