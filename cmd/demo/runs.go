package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// runs is what a directory knows about the runs over it: for each, in order, whether it has ended by a drain. A run that
// was killed has not, and is the one reason for an event to be done again without a redelivery.
type runs struct {
	path  string
	Clean []bool `json:"clean"`
	// Repeat is how often the feed is in the directory's topic: the most that a run has asked for.
	Repeat int `json:"repeat"`
	// Broker is what the runs were on: the address of a cluster, or nothing for the broker in the directory.
	Broker string `json:"broker,omitempty"`
	// Space is the directory's own namespace at a cluster.
	Space string `json:"space,omitempty"`
}

// openRuns reads the runs of a directory and adds one, which counts as killed until clean is called.
func openRuns(dir string, repeat int, broker string) (*runs, error) {
	r := &runs{path: filepath.Join(dir, "runs.json")}

	text, err := os.ReadFile(r.path)
	if err == nil {
		err = json.Unmarshal(text, r)
	}

	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("demo: %s: %w; use another -keep directory", r.path, err)
	}

	if len(r.Clean) > 0 && r.Broker != broker {
		return nil, fmt.Errorf("demo: the runs in %s were on %s; give the same -broker, or use another -keep directory",
			dir, cmp.Or(r.Broker, "the embedded broker"))
	}

	if r.Broker = broker; broker != "" && r.Space == "" {
		r.Space = fmt.Sprintf("demo-%08x", rand.Uint32())
	}

	r.Clean = append(r.Clean, false)
	r.Repeat = max(r.Repeat, repeat)

	if err := r.save(); err != nil {
		return nil, err
	}

	return r, nil
}

// current returns the number of this run, from 1.
func (r *runs) current() int { return len(r.Clean) }

// clean records that this run has drained.
func (r *runs) clean() error {
	r.Clean[len(r.Clean)-1] = true

	return r.save()
}

// killedSince reports whether one of the runs from <= run < to ended without a drain.
func (r *runs) killedSince(from, to int) bool {
	for run := max(1, from); run < to && run <= len(r.Clean); run++ {
		if !r.Clean[run-1] {
			return true
		}
	}

	return false
}

// save replaces the file in one step, so that a kill leaves the old or the new one.
func (r *runs) save() error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}

	if err := os.WriteFile(r.path+".new", text, 0o600); err != nil {
		return fmt.Errorf("demo: %w", err)
	}

	if err := os.Rename(r.path+".new", r.path); err != nil {
		return fmt.Errorf("demo: %w", err)
	}

	return nil
}
