package archive

import (
	"sync/atomic"

	"github.com/millrace/millrace/plugins"
)

// counts is what both plugins count.
type counts struct{ archives, messages atomic.Int64 }

// metrics says what is counted: archives made or read, and messages in them.
func metrics(done string) []plugins.Metric {
	return []plugins.Metric{
		{Name: "archives", Help: "Archives " + done + "."}, {Name: "messages", Help: "Messages in them."},
	}
}

func (c *counts) add(messages int) {
	c.archives.Add(1)
	c.messages.Add(int64(messages))
}

// Meter returns how many archives there were, and how many messages in them.
func (c *counts) Meter() map[string]int64 {
	return map[string]int64{"archives": c.archives.Load(), "messages": c.messages.Load()}
}
