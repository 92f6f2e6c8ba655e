//go:build wasip1

// Command guest is the identity stage as a WebAssembly module.
package main

import "github.com/millrace/millrace/plugins/wasm/guest"

func init() { guest.Handle(pass) } //nolint:gochecknoinits // how a module without a main begins

func pass([]byte) error {
	guest.Pass()

	return nil
}

func main() {}
