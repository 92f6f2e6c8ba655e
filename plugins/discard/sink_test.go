package discard_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins/discard"
)

func TestWhatIsTakenIsCountedAndNotKept(t *testing.T) {
	t.Parallel()

	sink := discard.New(discard.Options{})

	for range 2 {
		if err := sink.Write(t.Context(), pipelinetest.Messages("1", "", "[2]")); err != nil {
			t.Fatal(err)
		}
	}

	if got, want := sink.Meter(), map[string]int64{"messages": 6, "bytes": 8}; !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

func ExampleSink() {
	sink := discard.New(discard.Options{})
	err := sink.Write(context.Background(), []*pipeline.Message{{Body: []byte("away with it")}})

	fmt.Println(sink.Meter(), err)
	// Output: map[bytes:12 messages:1] <nil>
}
