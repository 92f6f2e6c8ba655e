package sql_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
)

// A row may come before the one that it refers to: only its message is tried again, and it is written once that one is there.
func testOrphans(t *testing.T, w *world) {
	t.Helper()

	for _, deferred := range []string{"", " DEFERRABLE INITIALLY DEFERRED"} {
		parents := w.table(t, "id bigint PRIMARY KEY")
		table := w.table(t, "id bigint PRIMARY KEY CHECK (id < 9), parent bigint NOT NULL REFERENCES "+parents+deferred)
		options := map[string]any{"table": table, "columns": map[string]any{"id": "body.id", "parent": "body.p"}}
		sink := w.open(t, options)

		w.query(t, "INSERT INTO "+parents+" VALUES (1)")

		batch := pipelinetest.Messages(`{"id":1,"p":1}`, `{"id":2,"p":2}`, `{"id":3,"p":1}`, `{"id":9,"p":1}`, `{"id":4}`, `{"id":1,"p":1}`)
		failures, ok := errors.AsType[*pipeline.BatchError](sink.Write(t.Context(), batch))

		if !ok || len(failures.Failed) != 4 {
			t.Fatalf("%q: the error is %v", deferred, failures)
		}

		for i, err := range failures.Failed {
			if again := i == 1; pipeline.IsRejected(err) == again {
				t.Errorf("%q: message %d: %v", deferred, i, err)
			}
		}

		if err := failures.Failed[1]; !strings.Contains(err.Error(), "Key (parent)=(2) is not present in table") {
			t.Errorf("%q: %v does not say which", deferred, err)
		}

		if got := sink.Meter(); got["rows"] != 2 || got["orphans"] != 1 || got["rejected"] != 3 || got["reconnects"] != 0 {
			t.Errorf("%q: counted %v", deferred, got)
		}

		options["missing_parent"] = "reject"
		if err := w.open(t, options).Write(t.Context(), batch[1:2]); !isRejection(err, 0) {
			t.Errorf("%q: the error is %v", deferred, err)
		}

		w.query(t, "INSERT INTO "+parents+" VALUES (2)")

		if err := sink.Write(t.Context(), batch[1:2]); err != nil {
			t.Errorf("%q: its parent is there: %v", deferred, err)
		}

		if got := w.query(t, "SELECT id||'' FROM "+table+" ORDER BY id"); !slices.Equal(got, []string{"1", "2", "3"}) {
			t.Errorf("%q: the table has %q", deferred, got)
		}
	}
}

func isRejection(err error, i int) bool {
	failures, ok := errors.AsType[*pipeline.BatchError](err)

	return ok && pipeline.IsRejected(failures.Failed[i])
}

// A server may have enough in the middle of a batch: whatever it has not taken by then fails, and nothing is rejected for that.
func testBusy(t *testing.T, w *world) {
	t.Helper()

	table := w.table(t, "n bigint CHECK (n >= 0)")

	w.query(t, "CREATE FUNCTION "+table+"_busy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "+
		"IF NEW.n = 100 THEN RAISE EXCEPTION 'too busy' USING ERRCODE = '40001'; END IF; RETURN NEW; END $$")
	w.query(t, "CREATE TRIGGER busy BEFORE INSERT ON "+table+" FOR EACH ROW EXECUTE FUNCTION "+table+"_busy()")

	sink := w.open(t, map[string]any{"table": table, "columns": map[string]any{"n": "body"}})

	// In one transaction: none of the rows is there.
	failures, _ := errors.AsType[*pipeline.BatchError](sink.Write(t.Context(), pipelinetest.Messages("1", "100", "2")))

	for i := range 3 {
		if err := failures.Failed[i]; err == nil || pipeline.IsRejected(err) || !strings.Contains(err.Error(), "too busy") {
			t.Errorf("message %d: %v", i, err)
		}
	}

	// With so many bad rows that the rest goes row by row: those before are there, those behind were not tried.
	bodies := slices.Repeat([]string{"-1"}, 12)
	bodies = append(bodies, "3", "100", "4", "-1", "5")
	failures, _ = errors.AsType[*pipeline.BatchError](sink.Write(t.Context(), pipelinetest.Messages(bodies...)))

	for i := range bodies {
		err := failures.Failed[i]

		switch {
		case i < 12 && !pipeline.IsRejected(err), i == 12 && err != nil, i > 12 && (err == nil || pipeline.IsRejected(err)):
			t.Errorf("message %d, %s: %v", i, bodies[i], err)
		}
	}

	if got := w.query(t, "SELECT n||'' FROM "+table+" ORDER BY n"); !slices.Equal(got, []string{"3"}) {
		t.Errorf("the table has %q", got)
	}
}
