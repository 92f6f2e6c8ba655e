package routes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Checkpoints is what the names of the topics begin with in which groups keep what they have finished above their offsets.
const Checkpoints = "millrace_checkpoints_"

const (
	retryMark = "%RETRY%"
	deadMark  = "%DLQ%"

	maxTopic    = 127
	maxOwnTopic = 255 // of a group: its retries and its dead letters
	maxGroup    = 120
)

// nameForm is what brokers accept as the name of a topic or a group.
var nameForm = regexp.MustCompile(`^[%|a-zA-Z0-9_-]+$`)

// CheckTopic returns an error when brokers refuse the name of a topic.
func CheckTopic(name string) error {
	if strings.HasPrefix(name, retryMark) || strings.HasPrefix(name, deadMark) {
		return checkName("topic", name, maxOwnTopic)
	}

	return checkName("topic", name, maxTopic)
}

// CheckGroup returns an error when brokers refuse the name of a group.
func CheckGroup(name string) error { return checkName("group", name, maxGroup) }

func checkName(what, name string, most int) error {
	if name == "" {
		return fmt.Errorf("rocketmq: the %s has no name", what)
	}

	if !nameForm.MatchString(name) {
		return fmt.Errorf("rocketmq: %s %q: a name is made of letters, digits, and the characters %%|_-", what, name)
	}

	if len(name) > most {
		return fmt.Errorf("rocketmq: %s %.20q... has %d characters; RocketMQ allows %d", what, name, len(name), most)
	}

	return nil
}

// isSystem reports whether a topic is one that brokers make for themselves.
func isSystem(topic string) bool {
	return strings.HasPrefix(topic, "RMQ_SYS_") || strings.HasPrefix(topic, "rmq_sys_") || slices.Contains([]string{
		"TBW102", "SCHEDULE_TOPIC_XXXX", "BenchmarkTest", "OFFSET_MOVED_EVENT", "SELF_TEST_TOPIC", "DefaultHeartBeatSyncerTopic",
	}, topic)
}

// Namespace separates the users of one cluster: names have it as a prefix on the wire, and nowhere else. Empty means none.
type Namespace string

// Wrap returns the name of a topic or group on the wire. The mark of retries and dead letters stays in front; the topics that
// brokers make for themselves belong to no namespace.
func (n Namespace) Wrap(name string) string {
	if n == "" || isSystem(name) {
		return name
	}

	mark, rest := cutMark(name)

	return mark + string(n) + "%" + rest
}

// Unwrap is the opposite of Wrap. A name that is not in the namespace is returned as it is.
func (n Namespace) Unwrap(name string) string {
	if n == "" {
		return name
	}

	mark, rest := cutMark(name)

	return mark + strings.TrimPrefix(rest, string(n)+"%")
}

// Holds reports whether a name on the wire, without the mark of retries or dead letters, is in the namespace. Without a namespace
// only names without any are.
func (n Namespace) Holds(name string) bool {
	if n == "" {
		return !strings.Contains(name, "%")
	}

	return strings.HasPrefix(name, string(n)+"%")
}

// cutMark splits a name into the mark of retries or dead letters, if any, and the rest.
func cutMark(name string) (mark, rest string) {
	for _, mark := range []string{retryMark, deadMark} {
		if rest, found := strings.CutPrefix(name, mark); found {
			return mark, rest
		}
	}

	return "", name
}
