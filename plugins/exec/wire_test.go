package exec

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
)

// TestTheProtocolIsWhatTheDocumentSays holds frames of docs/exec.md to the byte.
func TestTheProtocolIsWhatTheDocumentSays(t *testing.T) {
	t.Parallel()

	w := newWriter()

	hello, err := w.hello(64 << 20)
	if got, want := hex.EncodeToString(hello), "00000015"+"82"+"a86d696c6c72616365"+"01"+"a56672616d65"+"ce04000000"; got[8:] != want[8:] || err != nil {
		t.Errorf("hello is\n%s, want\n%s", got, want)
	}

	m := &pipeline.Message{ID: "7", Topic: "q", Key: "k", Body: []byte("hi"), Born: time.Unix(0, 5), Origin: pipeline.Origin{Delivery: 1}}

	frame, n, err := w.batch(3, []*pipeline.Message{m}, 1000)
	want := "93" + "a5" + hex.EncodeToString([]byte("batch")) + "03" + "91" + "92" +
		"c424" + "85" + "a26964a137" + "a5746f706963a171" + "a36b6579a16b" + "a4626f726e05" + "a864656c697665727901" +
		"c4026869"

	if got := hex.EncodeToString(frame); got[8:] != want || n != 1 || err != nil {
		t.Errorf("the batch is\n%s, want\n%s", got[8:], want)
	}

	if got := binary.BigEndian.Uint32(frame); int(got) != len(frame)-prefix {
		t.Errorf("the length is %d of %d", got, len(frame)-prefix)
	}
}

func TestFramesAreReadAsTheyArrive(t *testing.T) {
	t.Parallel()

	large := bytes.Repeat([]byte("x"), 5<<20)
	stream := append(framed([]byte("a")), framed(nil)...)
	stream = append(stream, framed(large)...)

	from := iotest.HalfReader(bytes.NewReader(stream))

	var buffer []byte

	for _, want := range [][]byte{[]byte("a"), {}, large} {
		got, err := readFrame(from, buffer, len(large))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("read %d bytes, %v; want %d", len(got), err, len(want))
		}

		buffer = got
	}

	if _, err := readFrame(from, buffer, 1); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}

	if _, err := readFrame(bytes.NewReader([]byte{0, 0, 0, 9, 1}), nil, 9); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("in the middle: %v", err)
	}

	if _, err := readFrame(bytes.NewReader([]byte{0, 0, 0, 9, 1}), nil, 8); err == nil || !strings.Contains(err.Error(), "limit is 8") {
		t.Errorf("above the limit: %v", err)
	}
}

// TestAnAnnouncedLengthAllocatesNothing reads the beginning of a frame of 1 GiB that never comes.
func TestAnAnnouncedLengthAllocatesNothing(t *testing.T) {
	var before, after runtime.MemStats

	runtime.ReadMemStats(&before)

	_, err := readFrame(bytes.NewReader([]byte{0x40, 0, 0, 0, 1, 2, 3}), nil, 1<<30)

	runtime.ReadMemStats(&after)

	if allocated := after.TotalAlloc - before.TotalAlloc; err == nil || allocated > 16<<20 {
		t.Errorf("%d bytes allocated for 3, %v", allocated, err)
	}
}

func TestAnswersThatBreakTheProtocolAreRefused(t *testing.T) {
	t.Parallel()

	out := func(fields map[string]any) []any { return []any{"done", uint64(1), []any{[]any{fields}}} }

	for want, answer := range map[string]any{
		"want done":                     []any{"gone", uint64(1), []any{nil}},
		"for batch 2, this is 1":        []any{"done", uint64(2), []any{nil}},
		"answer to 1 messages: 2 elem":  []any{"done", uint64(1), []any{nil, nil}},
		"the answer: 2 elements":        []any{"done", uint64(1)},
		"allows more than 3":            []any{"done", uint64(1), []any{[]any{nil, nil, nil, nil}}},
		`a message has no "topic"`:      out(map[string]any{"topic": "x"}),
		`a failure has no "reason"`:     []any{"done", uint64(1), []any{map[string]any{"reason": "x"}}},
		`"key": msgpack: invalid`:       out(map[string]any{"key": 5}),
		`"props": msgpack`:              out(map[string]any{"props": "x"}),
		"the result of message 0: msgp": []any{"done", uint64(1), []any{5}},
	} {
		payload, err := msgpack.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}

		if _, err := readReply(payload, 1, pipelinetest.Messages("x"), 3); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", answer, err, want)
		}
	}
}

func FuzzReply(f *testing.F) {
	for _, results := range []any{
		[]any{nil, []any{}},
		[]any{map[string]any{"error": "x", "reject": true}, map[string]any{"retry_ms": 5}},
		[]any{[]any{nil, map[string]any{"body": []byte("b"), "props": map[string]string{"a": "b"}}}, []any{map[string]any{"id": "i", "key": "k", "tag": "t"}}},
	} {
		payload, err := msgpack.Marshal([]any{"done", uint64(1), results})
		if err != nil {
			f.Fatal(err)
		}

		f.Add(payload)
	}

	f.Add([]byte("\x93\xa4done\x01\x92\xdd\xff\xff\xff\xff"))                 // more outputs than there are atoms
	f.Add([]byte("\x93\xa4done\x01\x92\x91\x81\xa4body\xc6\xff\xff\xff\xff")) // a body of 4 GiB
	f.Add([]byte("\x93\xa4done\x01\x92\x91\x81\xa5props\xdf\xff\xff\xff\xff"))
	f.Add(bytes.Repeat([]byte("\x91"), 10_000))

	f.Fuzz(func(t *testing.T, payload []byte) {
		const most = 5

		batch := pipelinetest.Messages("x", "y")
		_ = readHello(payload)

		results, err := readReply(payload, 1, batch, most)
		if err != nil {
			return
		}

		if len(results) != 2 {
			t.Fatalf("%d results", len(results))
		}

		for _, r := range results {
			if len(r.outs) > most || r.err != nil && len(r.outs) > 0 {
				t.Errorf("the result is %+v", r)
			}

			for _, out := range r.outs {
				if len(out.Body) > len(payload) || out.Origin.Queue.Topic != "test" {
					t.Errorf("an output is %+v", out)
				}
			}
		}
	})
}

// FuzzBatch holds that a frame is never larger than it was reckoned, and holds what it was made of.
func FuzzBatch(f *testing.F) {
	f.Add("id", "key", "name", "value", []byte("body"), int64(5), 1)

	f.Fuzz(func(t *testing.T, id, key, name, value string, body []byte, born int64, delivery int) {
		m := &pipeline.Message{
			ID: id, Key: key, Tag: name, Topic: value, Props: map[string]string{name: value}, Body: body,
			Born: time.Unix(0, born), Origin: pipeline.Origin{Delivery: delivery},
		}

		frame, n, err := newWriter().batch(1, []*pipeline.Message{m, m}, 1<<20)
		if err != nil || n == 0 && sizeOf(m) < 1<<19 {
			t.Fatal(n, err)
		}

		if n == 0 {
			return
		}

		if len(frame) > 1<<20 || len(frame) > 40+n*sizeOf(m) {
			t.Errorf("a frame of %d bytes for %d messages of %d", len(frame), n, sizeOf(m))
		}

		var batch wireBatch
		if err := msgpack.Unmarshal(frame[prefix:], &batch); err != nil {
			t.Fatal(err)
		}

		var header struct {
			ID       string            `msgpack:"id"`
			Key      string            `msgpack:"key"`
			Props    map[string]string `msgpack:"props"`
			Delivery int               `msgpack:"delivery"`
		}

		if err := msgpack.Unmarshal(batch.Messages[0].Header, &header); err != nil {
			t.Fatal(err)
		}

		if header.ID != id || header.Key != key || header.Props[name] != value || header.Delivery != delivery || !bytes.Equal(batch.Messages[0].Body, body) {
			t.Errorf("the frame holds %+v, %q", header, batch.Messages[0].Body)
		}
	})
}
