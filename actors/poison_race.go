//go:build race

package actors

import "github.com/millrace/millrace/pipeline"

// poison makes a returned block useless, so that a test with the race detector on sees whoever still reads it.
func poison(b *block) {
	for i := range b.n {
		b.records[i].offset = pipeline.Offset(-1 << 40)
		b.records[i].end = -1 << 40
	}
}
