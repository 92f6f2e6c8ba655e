package consumer_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/consumer"
)

func TestAMissingTopicIsToldWithItsCure(t *testing.T) {
	t.Parallel()

	thousands := make([]string, 4000)
	for i := range thousands {
		thousands[i] = "t" + strconv.Itoa(i)
	}

	const cure = "; mend the name, or create it: millrace topics create inn"

	for want, known := range map[string][]string{
		`consumer: no topic "inn"` + cure:                             nil,
		`consumer: no topic "inn"; there are: in, out` + cure:         {"in", "out"},
		`consumer: no topic "inn"; there are: t0, t1, t2, t3, t4, t5`: thousands,
	} {
		got := (&consumer.UnknownTopicError{Topic: "inn", Known: known}).Error()
		if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, cure) || len(got) > 300 {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
