package pipeline_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/millrace/millrace/pipeline"
)

func TestBatchErrorOfNothingIsNoError(t *testing.T) {
	t.Parallel()

	var failures pipeline.BatchError

	failures.Fail(1, nil)

	if err := failures.Err(); err != nil {
		t.Errorf("error %v though nothing failed", err)
	}
}

func TestBatchErrorNamesWhatFailed(t *testing.T) {
	t.Parallel()

	var failures pipeline.BatchError

	failures.Fail(5, pipeline.Reject(io.EOF))
	failures.Fail(2, io.ErrShortWrite)
	failures.Fail(5, pipeline.Reject(io.ErrUnexpectedEOF))

	err := failures.Err()

	batch, ok := errors.AsType[*pipeline.BatchError](err)
	if !ok || len(batch.Failed) != 2 {
		t.Fatalf("error %v, want a *BatchError with 2 failures", err)
	}

	if !errors.Is(batch.Failed[2], io.ErrShortWrite) || !errors.Is(batch.Failed[5], io.ErrUnexpectedEOF) {
		t.Errorf("failures %v, want the last error of each message", batch.Failed)
	}

	if pipeline.IsRejected(err) {
		t.Error("one rejected message rejects the batch")
	}

	want := "pipeline: 2 of the batch failed; [2] short write; [5] unexpected EOF"
	if got := err.Error(); got != want {
		t.Errorf("text %q, want %q", got, want)
	}
}

func TestBatchErrorStaysShort(t *testing.T) {
	t.Parallel()

	var failures pipeline.BatchError
	for i := range 100 {
		failures.Fail(i, io.EOF)
	}

	want := "pipeline: 100 of the batch failed; [0] EOF; [1] EOF; [2] EOF; …"
	if got := failures.Error(); got != want {
		t.Errorf("text %q, want %q", got, want)
	}
}

func TestFunctionsAreContracts(t *testing.T) {
	t.Parallel()

	m := &pipeline.Message{ID: "7"}
	batch := []*pipeline.Message{m}

	var seen []*pipeline.Message

	emit := func(out *pipeline.Message) error {
		seen = append(seen, out)

		return io.EOF
	}

	if err := pipeline.TransformFunc(pass).Transform(t.Context(), m, emit); !errors.Is(err, io.EOF) {
		t.Errorf("transform: error %v", err)
	}

	gather := func(_ context.Context, batch []*pipeline.Message, emit pipeline.Emit) error { return emit(batch[0]) }
	if err := pipeline.BatchTransformFunc(gather).TransformBatch(t.Context(), batch, emit); !errors.Is(err, io.EOF) {
		t.Errorf("batch transform: error %v", err)
	}

	sink := func(_ context.Context, batch []*pipeline.Message) error { return emit(batch[0]) }
	if err := pipeline.SinkFunc(sink).Write(t.Context(), batch); !errors.Is(err, io.EOF) {
		t.Errorf("sink: error %v", err)
	}

	if len(seen) != 3 {
		t.Errorf("%d calls arrived, want 3", len(seen))
	}

	if err := pipeline.Discard.Write(t.Context(), batch); err != nil {
		t.Errorf("discard: error %v", err)
	}
}
