//go:build wasip1

// Command example is a WebAssembly module for the plugin wasm: it gives earthquakes a tag, and throws away what is none.
package main

import (
	"encoding/json"

	"github.com/millrace/millrace/plugins/wasm/guest"
)

func init() { guest.Handle(classify) } //nolint:gochecknoinits // how a module without a main begins

func classify(body []byte) error {
	var quake struct {
		Type string  `json:"type"`
		Mag  float64 `json:"mag"`
	}

	if err := json.Unmarshal(body, &quake); err != nil {
		return guest.Reject(err)
	}

	if quake.Type != "earthquake" {
		return nil
	}

	if quake.Mag >= 6 {
		guest.Set("tag", "major")
	} else {
		guest.Set("tag", "minor")
	}

	guest.Pass()

	return nil
}

func main() {} // never called: the module is a library
