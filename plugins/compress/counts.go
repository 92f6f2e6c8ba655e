package compress

import (
	"sync/atomic"

	"github.com/millrace/millrace/plugins"
)

// counts is what both plugins count.
type counts struct{ in, out atomic.Int64 }

func metrics() []plugins.Metric {
	return []plugins.Metric{
		{Name: "bytes_in", Help: "Bytes of bodies before."}, {Name: "bytes_out", Help: "Bytes of bodies after."},
	}
}

func (c *counts) add(in, out int) {
	c.in.Add(int64(in))
	c.out.Add(int64(out))
}

// Meter returns how many bytes went in and came out.
func (c *counts) Meter() map[string]int64 {
	return map[string]int64{"bytes_in": c.in.Load(), "bytes_out": c.out.Load()}
}
