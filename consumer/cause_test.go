package consumer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
)

func TestADeadLettersCauseIsBounded(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("é", 1<<16)
	cause := consumer.Cause{Stage: long, Error: long, Stack: long, Deliveries: 1 << 30}

	for i := range 1000 {
		cause.Attempts = append(cause.Attempts, consumer.Attempt{Delivery: i + 1, Stage: long, Error: long})
	}

	size := 0

	props := cause.Props("group", time.Now())
	for name, value := range props {
		size += len(name) + len(value)
	}

	if size > 20<<10 {
		t.Errorf("the properties have %d bytes", size)
	}

	got, ok := consumer.CauseOf(props)
	if !ok || len(got.Attempts) == 0 || got.Attempts[len(got.Attempts)-1].Delivery != 1000 {
		t.Errorf("the last attempts are not kept: %+v", got.Attempts)
	}
}

func FuzzCauseOf(f *testing.F) {
	for name, value := range (consumer.Cause{Attempts: []consumer.Attempt{{Delivery: 1, Stage: "a/b", Error: "no"}}}).Props("g", time.Now()) {
		f.Add(name, value)
	}

	f.Fuzz(func(t *testing.T, name, value string) {
		cause, ok := consumer.CauseOf(map[string]string{consumer.PropDeadDeliveries: "1", name: value})
		if !ok {
			t.Fatal("it is a dead letter")
		}

		again, ok := consumer.CauseOf(cause.Props("g", time.Now()))
		if !ok || again.Deliveries != cause.Deliveries || len(again.Attempts) > len(cause.Attempts) {
			t.Errorf("%+v was read back as %+v", cause, again)
		}
	})
}
