package wasm_test

import (
	"os"
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins/wasm"
)

func BenchmarkTmp(b *testing.B) {
	code, _ := os.ReadFile("/tmp/modes.wasm")
	m, err := wasm.New(wasm.Options{Module: "x", Code: code}, nil)
	if err != nil {
		b.Fatal(err)
	}
	lane, _ := m.Lane()
	msg := pipelinetest.Message(strings.Repeat("x", 1024))
	emit := func(*pipeline.Message) error { return nil }
	if err := lane.Transform(b.Context(), msg, emit); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := lane.Transform(b.Context(), msg, emit); err != nil {
			b.Fatal(err)
		}
	}
}
