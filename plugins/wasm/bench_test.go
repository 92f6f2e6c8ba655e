package wasm

import (
	"context"
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins/wasm/wasmtest"
)

// BenchmarkTransform works at messages of 1 KiB, by one lane.
func BenchmarkTransform(b *testing.B) {
	for _, bench := range []struct {
		name, body string
		from       built
	}{
		{"raw code, pass", strings.Repeat("x", 1<<10), built{code: wasmtest.Pass()}},
		{"Go, emit", strings.Repeat("x", 1<<10), modes()},
		{"Go, JSON", `{"type":"earthquake","mag":6.5,"pad":"` + strings.Repeat("x", 985) + `"}`, example()},
	} {
		b.Run(bench.name, func(b *testing.B) {
			lane := setup(b, bench.from, Options{}, nil)
			m := pipelinetest.Message(bench.body)
			emit := func(*pipeline.Message) error { return nil }

			ctx, cancel := context.WithCancel(b.Context()) // as a job's contexts are, which can end
			defer cancel()

			if err := lane.Open(ctx); err != nil {
				b.Fatal(err)
			}

			b.ReportAllocs()

			for b.Loop() {
				if err := lane.Transform(ctx, m, emit); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
