// Package pluginstest is the suite of bad days that every plugin must pass, whatever it does: a next stage that panics,
// hangs, is slow or refuses; none, many and huge messages; contexts that have ended; several instances at once; bodies that
// make no sense. What a plugin should make of its messages is for its own tests, and for those of package pipelinetest,
// which [Test] runs too.
//
// The suite finds data races only when the tests run with -race.
package pluginstest

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
)

// Subject is a plugin under test.
type Subject struct {
	// New makes an instance that is not open yet: a [pipeline.Transform], a [pipeline.BatchTransform] or a [pipeline.Sink].
	// The suite opens and closes it. Instances of a stage may share something, as lanes do.
	New func(tb testing.TB) any
	// Good makes message n that the plugin takes. Messages of different n differ in id, key, body and offset, and a fresh
	// instance makes the same of the same message. It is called by several goroutines at
	// once. Nil makes messages with the JSON body {"n":n}.
	Good func(n int) *pipeline.Message
	// Silent says that the plugin emits nothing of good messages, so that the next stage cannot be tried.
	Silent bool
	// Bad are bodies that the plugin must come back from, beside those of [Seeds].
	Bad [][]byte
	// Metrics are the names that the plugin counts by, if it counts; nil is not compared.
	Metrics []string
}

// Of returns the subject of a registered plugin, with options as [plugins.Registry.Stage] takes them. It fails tb where the
// registry knows no such plugin or refuses the options.
func Of(tb testing.TB, r *plugins.Registry, kind plugins.Kind, name string, options any, env plugins.Env) Subject {
	tb.Helper()

	s := Subject{Metrics: []string{}}

	for _, d := range r.Find(name) {
		if d.Kind != kind {
			continue
		}

		for _, m := range d.Metrics {
			s.Metrics = append(s.Metrics, m.Name)
		}
	}

	var err error

	switch kind {
	case plugins.Transform:
		var stage pipeline.Stage

		stage, err = r.Stage(name, name, options, env)
		s.New = made(stage.New)
	case plugins.Gather:
		var stage *pipeline.GatherStage

		if stage, err = r.Gather(name, name, options, env); err == nil {
			s.New = made(stage.New)
		}
	case plugins.Sink:
		s.New = made(func() (pipeline.Sink, error) { return r.Sink(name, options, env) })
		err = r.Check(kind, name, options)
	default:
		err = fmt.Errorf("there is no kind %q", kind)
	}

	if err != nil {
		tb.Fatalf("%s %s: %v", kind, name, err)
	}

	return s
}

// made turns a factory into one that fails the test.
func made[P any](fresh func() (P, error)) func(tb testing.TB) any {
	return func(tb testing.TB) any {
		tb.Helper()

		p, err := fresh()
		if err != nil {
			tb.Errorf("New: %v", err)

			return nil
		}

		return p
	}
}

// good returns messages n to n+count-1.
func (s *Subject) good(n, count int) []*pipeline.Message {
	batch := make([]*pipeline.Message, count)

	for i := range batch {
		if s.Good != nil {
			batch[i] = s.Good(n + i)
		} else {
			batch[i] = Message(n+i, fmt.Sprintf(`{"n":%d}`, n+i))
		}
	}

	return batch
}

// Message returns a message of its own for each n: with that id, key and offset, and with a body.
func Message(n int, body string) *pipeline.Message {
	m := pipelinetest.Message(body)
	m.ID, m.Key, m.Origin.Offset = fmt.Sprintf("message-%d", n), fmt.Sprintf("key-%d", n), pipeline.Offset(n)

	return m
}

// Seeds returns bodies that make no sense to most plugins: broken JSON and numbers, deep nesting, bytes that are no text,
// beginnings of compressed data, and what looks like a length but is not.
func Seeds() [][]byte {
	const deep = 100_000

	nested := make([]byte, deep)
	for i := range nested {
		nested[i] = '['
	}

	seeds := [][]byte{nil, {}, nested}

	for _, text := range []string{
		"\n", "null", "{", "}", `{"a":`, `{"a":1}{"a":2}`, `[1,2`, `{"n":1e999999999}`, `{"n":-0}`, `{"n":"\ud800"}`,
		`{"":{"":{"":[]}}}`, `{"n":1,"n":2}`, "\x00", "\xff\xfe\xfd", "\xef\xbb\xbf{}", "\x1f\x8b\x08\x00", "\x28\xb5\x2f\xfd",
		"\x04\x22\x4d\x18", "\xff\xff\xff\xff", "\xc6\xff\xff\xff\xff", "%s%n${x}{{.}}", "'; drop table x; --",
		"../../etc/passwd",
	} {
		seeds = append(seeds, []byte(text))
	}

	return seeds
}
