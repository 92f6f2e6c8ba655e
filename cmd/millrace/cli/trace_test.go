package cli_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/cmd/millrace/cli"
)

// TestRunsSendTraces has an endpoint that takes spans as a collector does.
func TestRunsSendTraces(t *testing.T) {
	var (
		mu   sync.Mutex
		sent bytes.Buffer
	)

	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			body, _ = gzip.NewReader(r.Body)
		}

		mu.Lock()
		defer mu.Unlock()

		_, _ = io.Copy(&sent, body)
	}))
	t.Cleanup(collector.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_SERVICE_NAME", "quakes-of-ours")

	w := setup(t)
	file := w.write("job.yaml", upperJob)

	w.ok("one\ntwo\n", "produce", "in", "--create")
	w.ok("", "run", "-q", "--until-end", "--trace", "1", file)

	mu.Lock()
	defer mu.Unlock()

	// The strings of a message of protobuf stand in it as they are.
	for _, want := range []string{"quakes-of-ours", "/sink", "messaging.message.id", "millrace.channel"} {
		if !strings.Contains(sent.String(), want) {
			t.Errorf("no %q in %q", want, sent.String())
		}
	}

	if c := w.do("", "run", "--trace", "2", file); c.code != cli.ExitUsage || !strings.Contains(c.err, "--trace is 2") {
		t.Errorf("exit code %d, %s", c.code, c.err)
	}
}

// TestRunsSayOnceThatTracesCannotBeSent has nobody who takes them.
func TestRunsSayOnceThatTracesCannotBeSent(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", gone.URL)

	w := setup(t)
	file := w.write("job.yaml", upperJob)

	w.ok("one\n", "produce", "in", "--create")

	if c := w.do("", "run", "--until-end", "--trace", "1", file); c.code != cli.ExitOK || strings.Count(c.err, "traces cannot be sent") != 1 {
		t.Errorf("said was %s", c.err)
	}
}
