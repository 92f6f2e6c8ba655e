package pipeline_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
)

func TestCloneSharesOnlyTheBody(t *testing.T) {
	t.Parallel()

	build := func() *pipeline.Message {
		return &pipeline.Message{
			ID: "7", Topic: "quakes", Key: "us2000d3km", Tag: "major", Body: []byte("body"),
			Props: map[string]string{"region": "Alaska"}, Born: time.Unix(1204, 0),
			Origin: pipeline.Origin{Queue: pipeline.Queue{Topic: "quakes", ID: 2}, Offset: 9, Epoch: 3, Delivery: 1},
		}
	}

	m := build()
	clone := m.Clone()

	if !reflect.DeepEqual(clone, m) {
		t.Fatalf("clone %+v, want %+v", clone, m)
	}

	if &clone.Body[0] != &m.Body[0] {
		t.Error("the body was copied")
	}

	clone.SetProp("region", "Nevada")
	clone.SetProp("more", "x")

	clone.Tag, clone.Body, clone.Origin.Offset = "minor", []byte("other"), 10

	if !reflect.DeepEqual(m, build()) {
		t.Errorf("a change of the clone made %+v of the message", m)
	}
}

func TestCloneOfNoPropertiesHasItsOwn(t *testing.T) {
	t.Parallel()

	m := &pipeline.Message{}
	clone := m.Clone()
	clone.SetProp("region", "Alaska")

	if m.Props != nil || clone.Props["region"] != "Alaska" {
		t.Errorf("properties %v and %v, want none and the region", m.Props, clone.Props)
	}
}

func TestSizeCountsWhatIsStored(t *testing.T) {
	t.Parallel()

	m := &pipeline.Message{
		ID: "1", Key: "22", Tag: "333", Body: []byte("4444"), Props: map[string]string{"55555": "666666"}, Topic: "not counted",
	}

	if got, want := m.Size(), 1+2+3+4+5+6; got != want {
		t.Errorf("size %d, want %d", got, want)
	}

	if got := (&pipeline.Message{}).Size(); got != 0 {
		t.Errorf("size of nothing %d", got)
	}
}
