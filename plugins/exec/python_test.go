package exec_test

import (
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins/exec"
)

// python returns the interpreter.
func python(tb testing.TB) string {
	tb.Helper()

	path, err := osexec.LookPath("python3")
	if err != nil && os.Getenv("CI") != "" {
		tb.Fatal("there is no python3, and CI is set")
	}

	if err != nil {
		tb.Skip("there is no python3 here")
	}

	return path
}

func TestThePythonPackagePassesItsTests(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	tests := osexec.CommandContext(ctx, python(t), "-B", "-m", "unittest", "test_millrace")
	tests.Dir = "python"

	if out, err := tests.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestThePythonExampleWorks(t *testing.T) {
	t.Parallel()

	g, err := exec.New(exec.Options{Command: []string{python(t), "-B", "example.py"}, Dir: "python"}, nil)
	if err != nil {
		t.Fatal(err)
	}

	defer func() { _ = g.Close() }()

	if err := g.Open(t.Context()); err != nil {
		t.Fatal(err)
	}

	var next pipelinetest.Recorder

	batch := pipelinetest.Messages(
		`{"type":"earthquake","mag":6.4}`, `{"type":"explosion"}`, `{"type":"earthquake","mag":2}`, `{"type":`,
	)

	err = g.TransformBatch(t.Context(), batch, next.Emit)
	if err == nil || !strings.Contains(err.Error(), "1 of the batch failed; [3] exec: JSONDecodeError") {
		t.Errorf("the error is %v", err)
	}

	var tags []string
	for _, m := range next.Messages {
		tags = append(tags, m.ID+" "+m.Tag)
	}

	if got, want := strings.Join(tags, ", "), "message-0 major, message-2 minor"; got != want {
		t.Errorf("made %s, want %s", got, want)
	}
}

func BenchmarkPythonThatDoesNothing(b *testing.B) {
	const size = 256

	g, err := exec.New(exec.Options{
		Command: []string{python(b), "-B", "-c", "import millrace; millrace.run(lambda m: m)"}, Dir: "python",
	}, nil)
	if err != nil {
		b.Fatal(err)
	}

	defer func() { _ = g.Close() }()

	batch := pipelinetest.Messages(strings.Fields(strings.Repeat(strings.Repeat("x", 1024)+" ", size))...)
	ctx := b.Context()

	b.ReportAllocs()

	for b.Loop() {
		n := 0

		err := g.TransformBatch(ctx, batch, func(*pipeline.Message) error {
			n++

			return nil
		})
		if err != nil || n != size {
			b.Fatal(n, err)
		}
	}

	b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "messages/s")
}

func ExampleGather() {
	g, err := exec.New(exec.Options{Command: []string{"python3", "-B", "example.py"}, Dir: "python"}, nil)
	if err != nil {
		fmt.Println(err)

		return
	}

	defer func() { _ = g.Close() }()

	batch := []*pipeline.Message{{Body: []byte(`{"type":"earthquake","mag":6.4}`)}, {Body: []byte(`{"type":"explosion"}`)}}

	err = g.TransformBatch(context.Background(), batch, func(m *pipeline.Message) error {
		fmt.Println(m.Tag, string(m.Body))

		return nil
	})
	fmt.Println(err)
	// Output:
	// major {"type":"earthquake","mag":6.4}
	// <nil>
}
