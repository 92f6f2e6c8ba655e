package actors

import (
	"slices"

	"github.com/millrace/millrace/pipeline"
)

// PluginCounts are what the instances of a stage, a gather or a sink have counted, added up by name. A lane that replaces
// another begins anew, so a sum may fall.
type PluginCounts struct {
	// Stage is the stage's name; "sink" for a sink, and for a gather without a name "gather".
	Stage  string           `json:"stage"`
	Counts map[string]int64 `json:"counts"`
}

// meter is the counters of one instance.
type meter struct {
	stage string
	of    pipeline.Meter
}

// AddCounts asks the plugins for what they have counted, in the process of the job; elsewhere it does nothing. It calls their
// code in the caller's goroutine: should a plugin of your own wait there, no actor waits with it. One that panics has no counts.
func (s *Snapshot) AddCounts() {
	for i := range s.Channels {
		c := &s.Channels[i]

		for _, m := range c.meters {
			var counts map[string]int64

			_ = pipeline.Guard(c.Name, m.stage, func() error {
				counts = m.of.Meter()

				return nil
			})

			if len(counts) == 0 {
				continue
			}

			at := slices.IndexFunc(c.Plugins, func(p PluginCounts) bool { return p.Stage == m.stage })
			if at < 0 {
				at = len(c.Plugins)
				c.Plugins = append(c.Plugins, PluginCounts{Stage: m.stage, Counts: make(map[string]int64, len(counts))})
			}

			for name, n := range counts {
				c.Plugins[at].Counts[name] += n
			}
		}

		c.meters = nil // asked once, so that a second call does not count twice
	}
}
