package control_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/cmd/millrace/control"
	"github.com/millrace/millrace/consumer/embedded"
	"github.com/millrace/millrace/pipeline"
)

// serve opens a broker with a topic "in" of two queues, serves it until the test ends, and returns a client.
func serve(t *testing.T, dir string) *control.Client {
	t.Helper()

	broker, err := embedded.Open(embedded.Options{Dir: dir, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}

	if err := broker.CreateTopic(t.Context(), "in", 2); err != nil {
		t.Fatal(err)
	}

	server, err := control.Serve(dir, broker)
	if err != nil {
		t.Fatal(errors.Join(err, broker.Close()))
	}

	client, err := control.Connect(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		client.Close()

		if err := errors.Join(server.Close(), broker.Close()); err != nil {
			t.Error(err)
		}

		if _, err := control.Connect(t.Context(), dir); !errors.Is(err, control.ErrNotServed) {
			t.Errorf("after the end it can be connected to: %v", err)
		}
	})

	return client
}

func TestABrokerIsServedWhereverItsDirectoryIs(t *testing.T) {
	t.Parallel()

	for name, dir := range map[string]string{
		"a short path": "b",
		"a long path":  strings.Repeat("long/", 40) + "b",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			// Short in the first case, unlike t.TempDir, which has the test's name in it.
			top, err := os.MkdirTemp("", "m") //nolint:usetesting // as above
			if err != nil {
				t.Fatal(err)
			}

			t.Cleanup(func() { _ = os.RemoveAll(top) })

			client := serve(t, filepath.Join(top, dir))

			d, err := client.Describe(t.Context())
			if err != nil || len(d.Topics) != 1 || d.Topics[0].Name != "in" || len(d.Topics[0].Queues) != 2 {
				t.Errorf("the broker is %+v, %v", d, err)
			}
		})
	}
}

func TestWhatIsPublishedIsReadAsItWas(t *testing.T) {
	t.Parallel()

	client := serve(t, t.TempDir())
	sent := []control.Message{
		{ID: "1", Key: "k", Tag: "t", Props: map[string]string{"p": "1"}, Body: []byte("\x00\xff\nbytes")},
		{ID: "2", Key: "k", Body: []byte("")},
	}

	if err := client.Publish(t.Context(), "in", sent); err != nil {
		t.Fatal(err)
	}

	var got []control.Message

	read := control.Read{Topic: "in", From: control.Position{At: true, Start: pipeline.First}}

	err := client.Read(t.Context(), read, func(m *control.Message) error {
		got = append(got, *m)

		return nil
	})
	if err != nil || len(got) != 2 {
		t.Fatalf("read %d, %v", len(got), err)
	}

	for i, m := range got {
		if m.ID != sent[i].ID || m.Key != sent[i].Key || m.Tag != sent[i].Tag || !bytes.Equal(m.Body, sent[i].Body) ||
			m.Props["p"] != sent[i].Props["p"] || m.Born.IsZero() || int(m.Offset) != i {
			t.Errorf("message %d is %+v", i, m)
		}
	}

	stop := errors.New("stop")
	if err := client.Read(t.Context(), read, func(*control.Message) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("a visit that fails ends the read with %v", err)
	}
}

func TestFailuresComeInTheWordsOfTheBroker(t *testing.T) {
	t.Parallel()

	client := serve(t, t.TempDir())

	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"publish": {client.Publish(t.Context(), "im", nil), `no topic "im"; there are: in`},
		"topic":   {client.CreateTopic(t.Context(), "in", 3), `the topic has another number of queues: "in" has 2, not 3`},
		"read": {
			client.Read(t.Context(), control.Read{Topic: "im"}, func(*control.Message) error { return nil }),
			`no topic "im"; there are: in`,
		},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
}

func TestReadersLeaveFewNamesBehind(t *testing.T) {
	t.Parallel()

	client := serve(t, t.TempDir())

	for range 5 {
		err := client.Read(t.Context(), control.Read{Topic: "in"}, func(*control.Message) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}

	d, err := client.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	var names []string
	for _, g := range d.Groups {
		names = append(names, g.Name)
	}

	if !slices.Equal(names, []string{"millrace-read/1"}) {
		t.Errorf("the groups are %q", names)
	}
}

func TestPositionsAreReadAndWritten(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"first": "first", "last": "last", "0": "0", "1204": "1204", "2026-01-31T12:00:00Z": "2026-01-31T12:00:00Z",
	} {
		p, err := control.ParsePosition(text)
		if err != nil || p.String() != want {
			t.Errorf("%q is %q, %v", text, p, err)
		}
	}

	for _, text := range []string{"", "-1", "soon", "-5m", "2026-01-31"} {
		if p, err := control.ParsePosition(text); err == nil {
			t.Errorf("%q is %q", text, p)
		}
	}
}
