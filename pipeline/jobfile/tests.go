package jobfile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/plugins"
)

// Tests are the tests of a job: what goes in, and what must come out.
type Tests struct {
	// Name is the name that was given to [ParseTests].
	Name string
	// File is the job file, as it is written: relative to the file of the tests.
	File string
	// Job names the job of the file; empty where the file has only one.
	Job string
	// Variables are those of the job file, by name. Others are not set.
	Variables map[string]string
	// Cases are the tests, at least one.
	Cases []Case
}

// Case is one test.
type Case struct {
	Place

	// Name says what is tested.
	Name string
	// In are the messages that go in, in their order.
	In []TestMessage
	// Out are the messages that each sink must get, by the name of its channel, in any order.
	Out map[string][]TestMessage
	// Any are the sinks that may get what they like.
	Any []string
	// Fail are the messages that must end in the dead letters, in any order.
	Fail []Failure
}

// TestMessage is a message that goes in, or one that must come out, of which only what is written counts.
type TestMessage struct {
	Place

	Topic, ID string
	Key, Tag  *string
	Props     map[string]string
	// Body is a text, or a JSON document; nil when it is not written.
	Body []byte
}

// Failure is a message that must end in the dead letters.
type Failure struct {
	Place

	// Stage is where it failed, "channel/stage"; empty for anywhere. Error is a part of the error's text.
	Stage, Error string
	Key          *string
}

// ParseTests reads a file of tests. It fails with an [*Error], as [Parse] does.
func ParseTests(name string, src []byte) (*Tests, error) {
	d := &decoder{reader: &reader{file: name, literal: true, unset: make(map[Place]bool)}}

	docs := d.read(src)
	tests := &Tests{Name: name}

	switch {
	case len(docs) == 1:
		d.tests(tests, docs[0])
	case len(docs) > 1:
		d.mistakef(docs[1].at, "a file of tests has one document; move the second one to a file of its own")
	case len(d.mistakes) == 0:
		d.mistakef(Place{Line: 1, Column: 1}, "the file is empty; it should have job: and tests:")
	}

	if len(d.mistakes) > 0 {
		return nil, &Error{Mistakes: d.mistakes.sorted()}
	}

	return tests, nil
}

func (d *decoder) tests(tests *Tests, doc *node) {
	f := d.fields(doc, "the file", "job", "name", "variables", "tests")

	tests.File, tests.Job = f.text("job"), f.text("name")
	if f.missing("job") {
		d.mistakef(doc.at, "the file does not say which job is tested; add job: and the name of the job file")
	}

	tests.Variables = f.textTable("variables")

	n := f.get("tests")

	switch {
	case n == nil:
		if f.missing("tests") {
			d.mistakef(doc.at, "there are no tests; add tests: with at least one")
		}
	case n.kind == list && len(n.items) == 0:
		d.mistakef(n.at, "tests is empty; add at least one")
	case n.kind != list:
		d.mistakef(n.at, "tests is %s; it should be a list of tests, each with in: and out:", n.is())
	default:
		for _, item := range n.items {
			tests.Cases = append(tests.Cases, d.testCase(item))
		}
	}
}

// textTable returns a table of texts; nil when it is not there.
func (f fields) textTable(key string) map[string]string {
	n := f.get(key)
	if n == nil {
		return nil
	}

	if n.kind != table {
		f.mistakef(n.at, "%s is %s; it should be a table of names and texts", key, n.is())

		return nil
	}

	texts := make(map[string]string, len(n.entries))

	for _, e := range n.entries {
		if e.value.kind == list || e.value.kind == table {
			f.mistakef(e.value.at, "%s is %s; it should be a text", e.key, e.value.is())
		}

		texts[e.key] = e.value.text
	}

	return texts
}

func (d *decoder) testCase(n *node) Case {
	f := d.fields(n, "the test", "name", "in", "out", "fail")
	c := Case{Place: n.at, Name: f.text("name"), Out: make(map[string][]TestMessage)}

	if c.Name == "" {
		c.Name = fmt.Sprintf("line %d", n.at.Line)
	}

	c.In = d.messages(f.get("in"), "in", "topic", "id", "key", "tag", "props", "body")
	if f.missing("in") {
		d.mistakef(n.at, "nothing goes in; add in: with at least one message")
	}

	if out := f.get("out"); out != nil && out.kind != table {
		d.mistakef(out.at, "out is %s; it should be a table of channels with a sink, and what each sink gets", out.is())
	} else if out != nil {
		for _, e := range out.entries {
			if e.value.kind == single && e.value.text == "any" {
				c.Any = append(c.Any, e.key)
			} else {
				c.Out[e.key] = d.messages(e.value, e.key, "id", "key", "tag", "props", "body")
			}
		}
	}

	fail := f.get("fail")
	if fail == nil {
		return c
	}

	if fail.kind != list {
		fail = &node{kind: list, at: fail.at, items: []*node{fail}}
	}

	for _, item := range fail.items {
		w := d.fields(item, "fail", "stage", "error", "key")
		c.Fail = append(c.Fail, Failure{Place: item.at, Stage: w.text("stage"), Error: w.text("error"), Key: w.pointer("key")})
	}

	return c
}

// pointer returns the text of a key, nil when it is not there.
func (f fields) pointer(key string) *string {
	n := f.node.get(key)
	if n == nil {
		return nil
	}

	if n.kind == list || n.kind == table {
		f.mistakef(n.at, "%s is %s; it should be a text", key, n.is())
	}

	return &n.text
}

// messages reads a list of messages, each with some of the known keys.
func (d *decoder) messages(n *node, what string, known ...string) []TestMessage {
	if n == nil || n.kind == null {
		return nil
	}

	if n.kind != list {
		d.mistakef(n.at, "%s is %s; it should be a list of messages, such as [ { body: … } ]", what, n.is())

		return nil
	}

	messages := make([]TestMessage, 0, len(n.items))

	for _, item := range n.items {
		f := d.fields(item, "the message", known...)
		m := TestMessage{Place: item.at, Key: f.pointer("key"), Tag: f.pointer("tag"), Props: f.textTable("props")}

		if slices.Contains(known, "topic") {
			m.Topic = f.text("topic")
		}

		m.ID = f.text("id")
		if body := f.node.get("body"); body != nil {
			m.Body = d.body(body)
		}

		messages = append(messages, m)
	}

	return messages
}

// body returns a text as it is, and anything else as JSON.
func (d *decoder) body(n *node) []byte {
	if text, ok := n.value.(string); ok && n.kind == single {
		return []byte(text)
	}

	value := d.value(n, plugins.Option{Type: typeAny})

	body, err := json.Marshal(value)
	if err != nil {
		d.mistakef(n.at, "the body cannot be written as JSON: %s; use a text", strings.TrimPrefix(err.Error(), "json: "))
	}

	return body
}
