package pipeline

// Meter is what a [Transform], [BatchTransform] or [Sink] implements when it counts something of its own. Meter returns the
// counts by name, each since the instance was made; it may be called from any goroutine at any time, also after the end.
type Meter interface {
	Meter() map[string]int64
}
