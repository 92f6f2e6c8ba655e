package compress_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/compress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func compressor(tb testing.TB, options any) *compress.Compressor {
	tb.Helper()

	var o compress.Options
	if err := plugins.Decode(options, &o); err != nil {
		tb.Fatal(err)
	}

	c, err := compress.New(o)
	if err != nil {
		tb.Fatal(err)
	}

	return c
}

func decompressor(tb testing.TB, options any) *compress.Decompressor {
	tb.Helper()

	var o compress.DecompressOptions
	if err := plugins.Decode(options, &o); err != nil {
		tb.Fatal(err)
	}

	d, err := compress.NewDecompressor(o)
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() { _ = d.Close() })

	return d
}

// one returns the only output of m.
func one(tb testing.TB, transform pipeline.Transform, m *pipeline.Message) *pipeline.Message {
	tb.Helper()

	var next pipelinetest.Recorder
	if err := transform.Transform(tb.Context(), m, next.Emit); err != nil {
		tb.Fatal(err)
	}

	if len(next.Messages) != 1 {
		tb.Fatalf("%d outputs", len(next.Messages))
	}

	return next.Messages[0]
}

// packed is a message as compress leaves it.
func packed(tb testing.TB, format, body string) *pipeline.Message {
	tb.Helper()

	return one(tb, compressor(tb, format), pipelinetest.Message(body))
}

func formats() []string { return []string{"gzip", "zstd", "lz4"} }

func TestCompressAndDecompressAreTransforms(t *testing.T) {
	t.Parallel()

	done := pipelinetest.Message("not looked at")
	done.SetProp(compress.PropEncoding, "br")

	strange := pipelinetest.Message("x")
	strange.SetProp(compress.PropEncoding, "br")

	plain := pipelinetest.Message("plain")

	for _, format := range formats() {
		t.Run(format, func(t *testing.T) {
			t.Parallel()

			small := packed(t, format, "quake")
			cut := small.Clone()
			cut.Body = cut.Body[:len(cut.Body)-3]
			bomb := packed(t, format, strings.Repeat("0", 1<<20))
			fits := packed(t, format, strings.Repeat("0", 1<<10))

			pipelinetest.TestTransform(t, func() (pipeline.Transform, error) { return compressor(t, format), nil },
				pipelinetest.Case{Name: "body", In: pipelinetest.Message("quake"), Want: []*pipeline.Message{small}},
				pipelinetest.Case{Name: "empty", In: pipelinetest.Message(""), Want: []*pipeline.Message{packed(t, format, "")}},
				pipelinetest.Case{Name: "done already", In: done, Want: []*pipeline.Message{done}},
			)

			pipelinetest.TestTransform(t, func() (pipeline.Transform, error) {
				return decompressor(t, map[string]any{"limit": "1KiB"}), nil
			},
				pipelinetest.Case{Name: "body", In: small, Want: []*pipeline.Message{propless("quake")}},
				pipelinetest.Case{Name: "empty", In: packed(t, format, ""), Want: []*pipeline.Message{propless("")}},
				pipelinetest.Case{Name: "at the limit", In: fits, Want: []*pipeline.Message{propless(strings.Repeat("0", 1<<10))}},
				pipelinetest.Case{Name: "not compressed", In: plain, Want: []*pipeline.Message{plain}},
				pipelinetest.Case{Name: "cut off", In: cut, Fails: pipeline.IsRejected},
				pipelinetest.Case{Name: "bomb", In: bomb, Fails: pipeline.IsRejected},
				pipelinetest.Case{Name: "other format", In: strange, Fails: pipeline.IsRejected},
			)
		})
	}
}

func propless(body string) *pipeline.Message { return pipelinetest.Message(body) }

func TestALaneIsUsedAgainAfterAFailure(t *testing.T) {
	t.Parallel()

	for _, format := range formats() {
		c, d := compressor(t, format), decompressor(t, format)

		for i := range 20 {
			body := strings.Repeat(strconv.Itoa(i), i*1000)
			m := one(t, c, pipelinetest.Message(body))

			broken := m.Clone()
			broken.Body = broken.Body[:len(broken.Body)/2]

			if err := d.Transform(t.Context(), broken, nil); !pipeline.IsRejected(err) {
				t.Errorf("%s: half of body %d: %v", format, i, err)
			}

			if got := one(t, d, m); string(got.Body) != body || got.Props[compress.PropEncoding] != "" {
				t.Errorf("%s: body %d comes back as %d bytes, properties %v", format, i, len(got.Body), got.Props)
			}
		}
	}
}

// TestAFrameCannotAskForMoreMemoryThanTheLimit has a frame of 9 bytes that claims a window of 2 GiB.
func TestAFrameCannotAskForMoreMemoryThanTheLimit(t *testing.T) {
	t.Parallel()

	frame, err := hex.DecodeString("28b52ffd00a8010000")
	if err != nil {
		t.Fatal(err)
	}

	d := decompressor(t, map[string]any{"format": "zstd", "limit": "1MiB"})

	err = d.Transform(t.Context(), &pipeline.Message{Body: frame}, nil)
	if !pipeline.IsRejected(err) || !strings.Contains(err.Error(), "window size exceeded") {
		t.Errorf("the error is %v", err)
	}
}

func TestOthersCanReadIt(t *testing.T) {
	t.Parallel()

	r, err := gzip.NewReader(bytes.NewReader(packed(t, "gzip", "quake").Body))
	if err != nil {
		t.Fatal(err)
	}

	var out bytes.Buffer
	if _, err := out.ReadFrom(r); err != nil || out.String() != "quake" {
		t.Errorf("read %q, %v", out.String(), err)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()

	if err := plugins.Decode("zst", &compress.Options{}); err == nil || !strings.Contains(err.Error(), `did you mean "zstd"?`) {
		t.Errorf("the error is %v", err)
	}

	if _, err := compress.New(compress.Options{Format: 9}); err == nil {
		t.Error("format 9 compresses")
	}

	for _, o := range []compress.DecompressOptions{{Format: 9}, {Limit: -1}, {Limit: 1 << 40}} {
		if _, err := compress.NewDecompressor(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func FuzzDecompress(f *testing.F) {
	const limit = 4096

	for _, format := range formats() {
		for _, body := range []string{"", "quake", strings.Repeat("0", 2*limit)} {
			f.Add(format, packed(f, format, body).Body)
		}
	}

	f.Fuzz(func(t *testing.T, format string, body []byte) {
		m := &pipeline.Message{Body: body, Props: map[string]string{compress.PropEncoding: format}}

		err := decompressor(t, map[string]any{"limit": limit}).Transform(t.Context(), m, func(m *pipeline.Message) error {
			if len(m.Body) > limit && format != "" {
				t.Errorf("%d bytes came out, the limit is %d", len(m.Body), limit)
			}

			return nil
		})
		if err != nil && !pipeline.IsRejected(err) {
			t.Errorf("the error is %v", err)
		}
	})
}

func ExampleCompressor() {
	c, err := compress.New(compress.Options{Format: compress.Zstd})
	if err != nil {
		fmt.Println(err)

		return
	}

	d, err := compress.NewDecompressor(compress.DecompressOptions{})
	if err != nil {
		fmt.Println(err)

		return
	}

	defer func() { _ = d.Close() }()

	ctx := context.Background()
	m := &pipeline.Message{Body: bytes.Repeat([]byte("quake "), 1000)}

	err = c.Transform(ctx, m, func(m *pipeline.Message) error {
		fmt.Println(m.Props, len(m.Body) < 100)

		return d.Transform(ctx, m, func(m *pipeline.Message) error {
			fmt.Println(m.Props, len(m.Body))

			return nil
		})
	})
	fmt.Println(err)
	// Output:
	// map[content-encoding:zstd] true
	// map[] 6000
	// <nil>
}
