//go:build !race

package pipeline

// mark says which stage a lane is in, for whoever looks from outside. It is written twice a stage, so an atomic store, which
// is a full barrier on amd64, would cost as much as all the rest of the chain. A plain word cannot be torn, and nothing is
// decided by it: a late look names the stage before or after. With the race detector on it is atomic; see mark_race.go.
type mark struct{ v int32 }

func (m *mark) set(i int32) { m.v = i }

func (m *mark) get() int32 { return m.v }
