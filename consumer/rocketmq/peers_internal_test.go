package rocketmq

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/consumer"
)

func TestSubscriptionsAreComparedByWhatTheyMean(t *testing.T) {
	t.Parallel()

	for theirs, want := range map[string]string{
		`[{"topic":"T","subString":"b||a||b","expressionType":"TAG","tagsSet":["a"]},{"topic":"U","subString":"*"}]`: "",
		`[{"topic":"T","subString":"a || b"},{"topic":"U"},{"topic":"%RETRY%G","subString":"never"}]`:                "",
		`[{"topic":"T","subString":"a","expressionType":"TAG"},{"topic":"U","subString":"*"}]`:                       `topic "T": there tags "a", here tags "a || b"`,
		`[{"topic":"T","subString":"a || b"},{"topic":"U","subString":"n > 1","expressionType":"SQL92"}]`:            `topic "U": there SQL92 "n > 1", here everything`,
		`[{"topic":"T","subString":"a || b"},{"topic":"V","subString":"*"}]`:                                         `topic "U": there nothing, here everything; topic "V": there everything, here nothing`,
		`[{"topic":"T","subString":"` + strings.Repeat("x", 5000) + `"},{"topic":"U"}]`:                              `topic "T": there tags "` + strings.Repeat("x", maxWish) + `", here tags "a || b"`,
	} {
		m := compared(t)

		set, err := readSubscriptions([]byte(`{"mqTable":{{"queueId":0}:{"droped":false}},"subscriptionSet":` + theirs + `}`))
		if err != nil {
			t.Fatal(err)
		}

		if got := strings.Join(m.differences(set), "; "); got != want {
			t.Errorf("%s: %q, want %q", theirs, got, want)
		}
	}

	for _, body := range []string{"", "{}", `{"subscriptionSet":[]}`, `{"subscriptionSet":{"topic":"T"}}`} {
		if set, err := readSubscriptions([]byte(body)); err == nil {
			t.Errorf("%q is read as %v", body, set)
		}
	}
}

// compared returns a member that reads a topic by tags and another one whole.
func compared(tb testing.TB) *member {
	tb.Helper()

	b, err := Open(Options{NameServers: []string{"127.0.0.1:1"}, Filters: map[string]Filter{"T": {Tags: "a||b"}}})
	if err != nil {
		tb.Fatal(err)
	}

	m, err := newMember(b, consumer.Subscription{Group: "G", Topics: []string{"T", "U"}})
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() {
		m.client.Close()

		if err := b.Close(); err != nil {
			tb.Error(err)
		}
	})

	return m
}

func FuzzSubscriptionsOfOthers(f *testing.F) {
	f.Add([]byte(`{"subscriptionSet":[{"topic":"T","subString":"a || b","expressionType":"TAG"}],"mqTable":{{"queueId":0}:{}}}`))
	f.Add([]byte(`{"subscriptionSet":[{"topic":"%RETRY%G","subString":"*"},{"topic":"T","subString":"||","expressionType":"x"}]}`))
	f.Add([]byte(`{"subscriptionSet":null}`))

	m := compared(f)

	f.Fuzz(func(t *testing.T, body []byte) {
		set, err := readSubscriptions(body)
		if err != nil {
			return
		}

		if !slices.Equal(m.differences(set), m.differences(set)) {
			t.Error("it is told in another way each time")
		}
	})
}
