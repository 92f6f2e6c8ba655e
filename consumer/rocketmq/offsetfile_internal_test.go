package rocketmq

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

const javaOffsets = `{
	"offsetTable":{{
			"brokerName":"b0",
			"queueId":1,
			"topic":"ns%T"
		}:123,{"brokerName":"b0","queueId":2,"topic":"ns%T"}:-1
	}
}`

func queue(id int) pipeline.Queue { return pipeline.Queue{Topic: "T", Broker: "b0", ID: id} }

func openFile(t *testing.T, dir string) (*offsetFile, error) {
	t.Helper()

	f, err := openOffsets(dir, "one", "10.0.0.1@one", "G", func(name string) string { return name[len("ns%"):] })
	if err == nil {
		t.Cleanup(f.close)
	}

	return f, err
}

// written returns a directory with offsets of two commits.
func written(t *testing.T) (dir string, want consumer.Checkpoint) {
	t.Helper()

	dir = t.TempDir()
	want = consumer.Checkpoint{Next: 7, Done: []consumer.Run{{From: 9, To: 12}}}

	f, err := openFile(t, dir)
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []consumer.Checkpoint{{Next: 5}, want} {
		if err := f.commit(queue(0), c); err != nil {
			t.Fatal(err)
		}
	}

	if _, err := openFile(t, dir); !errors.Is(err, ErrOffsetFile) {
		t.Errorf("a second member of the instance: %v", err)
	}

	f.close()

	return dir, want
}

func spoil(t *testing.T, file string) {
	t.Helper()

	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOffsetsOfABroadcastingMemberOutliveIt(t *testing.T) {
	t.Parallel()

	dir, want := written(t)

	f, err := openFile(t, dir)
	if err != nil {
		t.Fatal(err)
	}

	if c, err := f.stored(queue(0)); err != nil || c.Next != want.Next || !slices.Equal(c.Done, want.Done) {
		t.Errorf("stored is %v, %v", c, err)
	}

	if _, err := f.stored(queue(1)); !errors.Is(err, consumer.ErrNoCheckpoint) {
		t.Errorf("of a queue without a checkpoint is stored %v", err)
	}
}

func TestDamagedOffsetsAreTakenFromTheCopyOrRefused(t *testing.T) {
	t.Parallel()

	dir, _ := written(t)
	spoil(t, filepath.Join(dir, "one", "G", ownFile))

	for range 2 { // the damaged file is put aside, and the copy stays
		f, err := openFile(t, dir)
		if err != nil {
			t.Fatal(err)
		}

		if c, err := f.stored(queue(0)); err != nil || c.Next != 5 {
			t.Errorf("the copy has %v, %v", c, err)
		}

		f.close()
	}

	if _, err := os.Stat(filepath.Join(dir, "one", "G", ownDamaged)); err != nil {
		t.Error("the damaged file is not kept for people:", err)
	}

	spoil(t, filepath.Join(dir, "one", "G", ownBackup))

	if _, err := openFile(t, dir); !errors.Is(err, ErrOffsetFile) {
		t.Errorf("with both files damaged: %v", err)
	}
}

func TestOffsetsOfAJavaClientAreTakenOver(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	java := filepath.Join(dir, "10.0.0.1@one", "G")

	if err := errors.Join(os.MkdirAll(java, 0o750), os.WriteFile(filepath.Join(java, javaFile), []byte(javaOffsets), 0o600)); err != nil {
		t.Fatal(err)
	}

	f, err := openFile(t, dir)
	if err != nil {
		t.Fatal(err)
	}

	if c, err := f.stored(queue(1)); err != nil || c.Next != 123 {
		t.Errorf("stored is %v, %v", c, err)
	}

	if _, err := f.stored(queue(2)); !errors.Is(err, consumer.ErrNoCheckpoint) {
		t.Errorf("an offset below 0 is stored as %v", err)
	}
}

func FuzzOffsetTable(f *testing.F) {
	f.Add([]byte(javaOffsets))
	f.Add([]byte(`{"offsetTable":[{"brokerName":"b0","queueId":1,"topic":"T","offset":5}]}`))
	f.Add([]byte(`{}`))
	f.Add([]byte(`[{"topic":"T","broker":"b0","queue":1,"next":7,"done":[[9,12]]}]`))
	f.Add(encodeOwn(map[pipeline.Queue]consumer.Checkpoint{queue(1): {Next: 7}}))

	f.Fuzz(func(t *testing.T, body []byte) {
		if offsets, err := readOffsetTable(body); err == nil && offsets == nil {
			t.Fatal("neither offsets nor an error")
		}

		queues, err := readOwn(body)
		for q, c := range queues {
			if err == nil && c.Validate() != nil {
				t.Fatalf("%s: %v", q, c)
			}
		}
	})
}
