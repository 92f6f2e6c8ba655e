package redis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins/redis"
	"github.com/millrace/millrace/plugins/servertest"
)

// One server serves them all.
func TestRedis(t *testing.T) {
	t.Parallel()

	w := &world{server: servertest.StartRedis(t)}

	for name, test := range map[string]func(*testing.T, *world){
		"is a sink":                             testSuite,
		"appends to streams and trims them":     testStreams,
		"puts before and behind lists":          testLists,
		"sets fields of hashes":                 testHashes,
		"rejects the refused command alone":     testWrongType,
		"rejects what makes no command":         testNoCommand,
		"notices a wrong server when it opens":  testOpen,
		"talks TLS":                             testTLS,
		"waits no longer than it may":           testHeld,
		"does a batch in one round trip":        testRoundTrips,
		"takes bytes and names as they are":     testBytes,
		"takes the password from its own place": testPassword,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}

func testSuite(t *testing.T, w *world) {
	t.Helper()

	pipelinetest.TestSink(t, pipelinetest.Harness{
		New: func(tb testing.TB) (pipeline.Sink, func() []string) {
			tb.Helper()

			lists := w.name() + ":"
			w.do(tb, "set", lists+"poison", "is no list")

			return w.make(tb, map[string]any{"command": "rpush", "key": lists + "{tag}"}), func() []string {
				return slices.Concat(w.list(tb, lists), w.list(tb, lists+"tag"))
			}
		},
		Poison: func(m *pipeline.Message) { m.Tag = "poison" },
	})
}

func testStreams(t *testing.T, w *world) {
	t.Helper()

	name := w.name()
	sink := w.open(t, map[string]any{"command": "xadd", "key": name + ":{body.r}"})

	if err := sink.Write(t.Context(), pipelinetest.Messages(`{"r":"a"}`, `{"r":"b","x":1}`)); err != nil {
		t.Fatal(err)
	}

	if got := w.stream(t, name+":b"); !slices.Equal(got, []string{`body {"r":"b","x":1}`}) {
		t.Errorf("the stream has %q", got)
	}

	sink = w.open(t, map[string]any{
		"command": "xadd", "key": name, "max_len": 100,
		"fields": map[string]any{"mag": "body.mag", "{key}": "body.doc", "none": "body.none"},
	})

	batch := make([]*pipeline.Message, 1000)
	for i := range batch {
		batch[i] = pipelinetest.Message(`{"mag":1.50,"doc":{"a":[1]}}`)
		batch[i].Key = "k"
	}

	if err := sink.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}

	got := w.stream(t, name)
	if len(got) < 100 || len(got) > 300 || got[0] != `mag 1.50 k {"a":[1]}` {
		t.Errorf("%d entries, the first is %q", len(got), got[0])
	}

	if got := sink.Meter(); got["written"] != 1000 || got["batches"] != 1 || got["rejected"] != 0 || got["unreachable"] != 0 {
		t.Errorf("counted %v", got)
	}
}

func testLists(t *testing.T, w *world) {
	t.Helper()

	for command, want := range map[string][]string{"rpush": {"a", "b"}, "LPUSH": {"b", "a"}} {
		name := w.name()
		sink := w.open(t, map[string]any{"command": command, "key": name, "value": "body.v"})

		if err := sink.Write(t.Context(), pipelinetest.Messages(`{"v":"a"}`, `{"v":"b"}`)); err != nil {
			t.Error(err)
		}

		if got := w.list(t, name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

func testHashes(t *testing.T, w *world) {
	t.Helper()

	name := w.name()
	sink := w.open(t, map[string]any{"command": "hset", "key": name, "fields": map[string]any{"{body.id}": "text", "last": "body.id"}})

	if err := sink.Write(t.Context(), pipelinetest.Messages(`{"id":"a","v":1}`, `{"id":"b"}`, `{"id":"a","v":2}`)); err != nil {
		t.Fatal(err)
	}

	for field, want := range map[string]string{"a": `{"id":"a","v":2}`, "b": `{"id":"b"}`, "last": "a"} {
		if got := w.do(t, "hget", name, field); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
}

func testWrongType(t *testing.T, w *world) {
	t.Helper()

	good, bad := w.name(), w.name()
	w.do(t, "set", bad, "x")

	sink := w.open(t, map[string]any{"command": "rpush", "key": "{key}"})

	batch := pipelinetest.Messages("1", "2", "3", "4")
	for i := range batch {
		batch[i].Key = []string{bad, good}[i%2]
	}

	failures, ok := errors.AsType[*pipeline.BatchError](sink.Write(t.Context(), batch))
	if !ok || len(failures.Failed) != 2 {
		t.Fatalf("the error is %v", failures)
	}

	for _, i := range []int{0, 2} {
		if err := failures.Failed[i]; !pipeline.IsRejected(err) || !strings.Contains(err.Error(), `rpush "`+bad+`": WRONGTYPE`) {
			t.Errorf("message %d: %v", i, err)
		}
	}

	if got := w.list(t, good); !slices.Equal(got, []string{"2", "4"}) {
		t.Errorf("the list has %q", got)
	}
}

func testNoCommand(t *testing.T, w *world) {
	t.Helper()

	name := w.name()

	for want, options := range map[string]map[string]any{
		"key: body.none: the message does not": {"command": "rpush", "key": "{body.none}"},
		"key: {key} makes an empty name":       {"command": "rpush", "key": "{key}"},
		"value: body.none: the message":        {"command": "rpush", "key": name, "value": "body.none"},
		"the message has none of them":         {"command": "xadd", "key": name, "fields": map[string]any{"a": "body.none"}},
		"fields: {body.none}: body.none: the":  {"command": "hset", "key": name, "fields": map[string]any{"{body.none}": "text"}},
	} {
		sink := w.open(t, options)
		m := pipelinetest.Message("{}")
		m.Key = ""

		err := sink.Write(t.Context(), []*pipeline.Message{m})

		failures, ok := errors.AsType[*pipeline.BatchError](err)
		if !ok || !pipeline.IsRejected(failures.Failed[0]) || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}

		if got := sink.Meter(); got["batches"] != 0 || got["rejected"] != 1 {
			t.Errorf("counted %v", got)
		}
	}
}

func testOpen(t *testing.T, w *world) {
	t.Helper()

	for want, url := range map[string]string{
		"WRONGPASS":          "redis://:hush-hush@" + w.server.Addr,
		"connection refused": "redis://:hush-hush@127.0.0.1:1",
		"DB index is out of": w.server.URL() + "7777",
	} {
		err := w.make(t, map[string]any{"command": "rpush", "key": "x", "url": url}).Open(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush-hush") {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}

	sink := w.open(t, map[string]any{"command": "rpush", "key": "x"})
	if err := sink.Open(t.Context()); err == nil {
		t.Error("opening twice is no error")
	}

	_ = sink.Close()

	if err := sink.Write(t.Context(), pipelinetest.Messages("1")); err == nil || pipeline.IsRejected(err) {
		t.Errorf("a closed sink: %v", err)
	}
}

func testTLS(t *testing.T, w *world) {
	t.Helper()

	own, ca := certificate(t)
	p := forward(t, tls.NewListener(listen(t), &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}), w.server.Addr)

	url := strings.NewReplacer("redis://", "rediss://", w.server.Addr, p.addr).Replace(w.server.URL())
	name := w.name()

	if err := w.make(t, map[string]any{"url": url, "command": "rpush", "key": name}).Open(t.Context()); err == nil {
		t.Error("a server that nobody knows is trusted")
	}

	sink := w.open(t, map[string]any{"url": url, "command": "rpush", "key": name, "tls": map[string]any{"ca": ca}})

	if err := sink.Write(t.Context(), pipelinetest.Messages("1")); err != nil || len(w.list(t, name)) != 1 {
		t.Error(err)
	}
}

func testHeld(t *testing.T, w *world) {
	t.Helper()

	p := forward(t, listen(t), w.server.Addr)
	url := strings.Replace(w.server.URL(), w.server.Addr, p.addr, 1)
	name := w.name()

	sink := w.open(t, map[string]any{"url": url, "command": "rpush", "key": name})
	quick := w.open(t, map[string]any{"url": url, "command": "rpush", "key": name, "timeout": "50ms"})

	p.held.Lock()

	// Neither deadline is far from the longest time that the client itself would wait.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()

	stopped, stop := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, stop)

	for _, c := range []struct {
		sink *redis.Sink
		ctx  context.Context //nolint:containedctx // a case
		want error
	}{{sink, ctx, context.DeadlineExceeded}, {sink, stopped, context.Canceled}, {quick, t.Context(), nil}} {
		begun := time.Now()

		err := c.sink.Write(c.ctx, pipelinetest.Messages("1"))
		if err == nil || pipeline.IsRejected(err) || c.want != nil && !errors.Is(cause(err), c.want) {
			t.Errorf("the error is %v, want %v", err, c.want)
		}

		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	}

	if got := quick.Meter()["unreachable"]; got != 1 {
		t.Errorf("%d times without an answer", got)
	}

	_ = sink.Close() // does not wait for what nobody answers

	p.held.Unlock()
}

// cause is the error of the first message.
func cause(err error) error {
	if failures, ok := errors.AsType[*pipeline.BatchError](err); ok {
		return failures.Failed[0]
	}

	return err
}

func testRoundTrips(t *testing.T, w *world) {
	t.Helper()

	p := forward(t, listen(t), w.server.Addr)
	name := w.name()
	sink := w.open(t, map[string]any{
		"url": strings.Replace(w.server.URL(), w.server.Addr, p.addr, 1), "command": "rpush", "key": name,
	})

	p.held.Lock()

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()

	if err := sink.Write(ctx, pipelinetest.Messages("1", "2", "3")); err == nil {
		t.Error("there was no answer, and no error")
	}

	// A sink that waits for an answer before it sends the next command has sent one.
	for _, want := range []string{"1", "2", "3"} {
		if got, err := w.try(t, "blpop", name, 10); err != nil || !slices.Equal(texts(got), []string{name, want}) {
			t.Errorf("%v, %v, want %s", got, err, want)
		}
	}

	p.held.Unlock()
}

func testBytes(t *testing.T, w *world) {
	t.Helper()

	name := w.name() + " \r\n$3\x00ü"
	sink := w.open(t, map[string]any{"command": "rpush", "key": "{key}"})

	m := pipelinetest.Message("\xff\x00\r\n*1\r\n")
	m.Key = name

	if err := sink.Write(t.Context(), []*pipeline.Message{m}); err != nil {
		t.Fatal(err)
	}

	if got := w.list(t, name); !slices.Equal(got, []string{string(m.Body)}) {
		t.Errorf("the list has %q", got)
	}
}

func testPassword(t *testing.T, w *world) {
	t.Helper()

	sink := w.open(t, map[string]any{
		"url": "redis://" + w.server.Addr, "password": w.server.Password, "command": "rpush", "key": "{key}",
	})

	secret := w.server.Password
	w.do(t, "set", secret, "no list")

	m := pipelinetest.Message("1")
	m.Key = secret

	if err := sink.Write(t.Context(), []*pipeline.Message{m}); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("the error is %v", err)
	}
}
