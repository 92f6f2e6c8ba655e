package pipeline

// Meter is what a [Transform], [BatchTransform] or [Sink] implements when it counts something of its own. Meter returns the
// counts by name, each since the instance was made, and none of which falls; the map belongs to the caller. It may be called
// from any goroutine at any time, also after the end, and must not wait for a call under way, which may be the one that hangs.
type Meter interface {
	Meter() map[string]int64
}
