package rocketmq

import (
	"slices"
	"testing"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

func FuzzCheckpointRecord(f *testing.F) {
	f.Add([]byte(`{"group":"G","topic":"T","next":3,"done":[1,2,5,1]}`))
	f.Add([]byte(`{"group":"G","topic":"T","next":9223372036854775807,"done":[9223372036854775807,1]}`))
	f.Add([]byte(`{"next":-1}`))
	f.Add([]byte(`[]`))

	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := decodeCheckpoint("G", "T", body)
		if err != nil {
			return
		}

		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}

		again, err := decodeCheckpoint("G", "T", encodeCheckpoint("G", "T", c))
		if err != nil || again.Next != c.Next || !slices.Equal(again.Done, c.Done) {
			t.Fatalf("%v came back as %v, %v", c, again, err)
		}
	})
}

func TestNewestRecordOfAnOffsetCounts(t *testing.T) {
	t.Parallel()

	run := []consumer.Run{{From: 8, To: 9}}
	tail := &tail{records: []consumer.Checkpoint{{Next: 3, Done: run}, {Next: 5, Done: run}, {Next: 3}, {Next: 7, Done: run}}}

	for next, done := range map[int]bool{3: false, 4: false, 5: true, 7: true} {
		if c, _ := tail.checkpoint(pipeline.Offset(next)); c.Next != pipeline.Offset(next) || (len(c.Done) > 0) != done {
			t.Errorf("stored with offset %d is %v", next, c)
		}
	}
}
