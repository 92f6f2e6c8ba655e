package embedded

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/millrace/millrace/consumer"
)

// formatOne is one pair of each kind as format 1 has them, see docs/embedded.md. What is written to a disk once is read for
// ever: a change that makes this test fail needs a new version, and code that still reads the old one.
func formatOne(t *testing.T) map[string]struct{ key, value []byte } {
	t.Helper()

	id, enc := queueID{topic: 1, queue: 2}, newEncoder()
	r := record{
		stored: 1_700_000_000_000_000_000, pos: 300, born: -1, delivery: 2, id: "i", key: "k", tag: "t", topic: "o",
		props: map[string]string{"n": "v"}, body: []byte("body"),
	}
	delayed, returned := delayedKey(1_700_000_000_000_000_000, 1<<32|5, id), returnedKey(7, id, 258)
	all := map[string]struct{ key, value []byte }{
		"record":   {id.recordKey(nil, 258), stored(t, id.recordKey(nil, 258), &r)},
		"delayed":  {delayed, stored(t, delayed, &r)},
		"returned": {key: returned},
	}

	for name, of := range map[string]struct {
		key    []byte
		encode func(key []byte) ([]byte, error)
	}{
		"topic": {nameKey(kindTopic, "a.b"), func(key []byte) ([]byte, error) {
			return enc.topic(key, newTopic("a.b", 1, 3))
		}},
		"queue": {id.stateKey(), func(key []byte) ([]byte, error) {
			return enc.queueState(key, queueState{first: 1, end: 259, firstPos: 40, endPos: 70_000, stored: 9})
		}},
		"group": {nameKey(kindGroup, "g"), func(key []byte) ([]byte, error) { return enc.single(key, 7) }},
		"checkpoint": {checkpointKey(7, id), func(key []byte) ([]byte, error) {
			return enc.checkpoint(key, consumer.Checkpoint{Next: 256, Done: []consumer.Run{{From: 257, To: 259}}})
		}},
		"openings": {[]byte{kindOpenings}, func(key []byte) ([]byte, error) { return enc.single(key, 3) }},
	} {
		value, err := of.encode(of.key)
		if err != nil {
			t.Fatal(err)
		}

		all[name] = struct{ key, value []byte }{of.key, bytes.Clone(value)}
	}

	return all
}

func TestFormatOneStaysAsItIs(t *testing.T) {
	t.Parallel()

	const fields = "9acf17979cfe362a0000cd012cff02a169a16ba174a16f92a16ea176c404626f6479"

	want := map[string]string{
		"record":     "72" + "00000001" + "00000002" + "0000000000000102" + " 01" + "2c5632f0" + fields,
		"delayed":    "64" + "17979cfe362a0000" + "0000000100000005" + "00000001" + "00000002" + " 01" + "59ed457d" + fields,
		"returned":   "78" + "00000007" + "00000001" + "00000002" + "0000000000000102" + " ",
		"topic":      "74" + "612e62" + " 01" + "98fd7326" + "920103",
		"queue":      "71" + "00000001" + "00000002" + " 01" + "17dc1245" + "9501cd010328ce0001117009",
		"group":      "67" + "67" + " 01" + "7c5b5021" + "9107",
		"checkpoint": "63" + "00000007" + "00000001" + "00000002" + " 01" + "f8f6a769" + "92cd010092cd0101cd0103",
		"openings":   "6e" + " 01" + "6b51709e" + "9103",
	}

	for name, pair := range formatOne(t) {
		if got := hex.EncodeToString(pair.key) + " " + hex.EncodeToString(pair.value); got != want[name] {
			t.Errorf("%s:\n%s, want\n%s", name, got, want[name])
		}
	}

	if got := hex.EncodeToString(mark(258, 257)); got != "6d696c6c"+"0000000000000102"+"0000000000000101" {
		t.Errorf("the mark of a write: %s", got)
	}

	if got := fmt.Sprintf(formatText, formatVersion, "0a1b2c3d"); got != "millrace embedded broker\nformat 1\nstore 0a1b2c3d\n" {
		t.Errorf("FORMAT: %q", got)
	}

	if got := hash("key"); got != 0x6815c86c {
		t.Errorf("the hash of a key: %#x", got)
	}
}
