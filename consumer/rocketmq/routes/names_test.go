package routes_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/consumer/rocketmq/routes"
)

func TestNamespacesWrapNames(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]string{
		"T": "ns%T", "%RETRY%g": "%RETRY%ns%g", "%DLQ%g": "%DLQ%ns%g", "TBW102": "TBW102", "ns": "ns%ns",
	} {
		space := routes.Namespace("ns")
		if got := space.Wrap(name); got != want || space.Unwrap(got) != name {
			t.Errorf("%s becomes %s, and that %s", name, got, space.Unwrap(got))
		}

		if none := routes.Namespace(""); none.Wrap(name) != name || none.Unwrap(want) != want {
			t.Errorf("without a namespace %s becomes %s", name, none.Wrap(name))
		}
	}
}

func TestNamesThatBrokersRefuse(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("x", 121)

	for name, legal := range map[string][2]bool{ // as a topic, as a group
		"":                   {false, false},
		"orders-1_a|b%":      {true, true},
		"größe":              {false, false},
		"a b":                {false, false},
		long:                 {true, false},
		long + "1234567":     {false, false},
		"%RETRY%" + long:     {true, false},
		"%DLQ%" + long[1:]:   {true, false},
		long[1:]:             {true, true},
		"new\nline":          {false, false},
		"%RETRY%" + long[1:]: {true, false},
	} {
		for i, check := range []func(string) error{routes.CheckTopic, routes.CheckGroup} {
			if err := check(name); (err == nil) != legal[i] {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}
