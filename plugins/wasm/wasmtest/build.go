// Package wasmtest builds modules for tests of stages in WebAssembly.
package wasmtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build compiles a Go package, named as for go build, into a module. It needs the go command, which knows by itself what it
// has built before.
func Build(ctx context.Context, pkg string) (code []byte, err error) {
	dir, err := os.MkdirTemp("", "wasmtest-")
	if err != nil {
		return nil, fmt.Errorf("wasmtest: %w", err)
	}

	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	file := filepath.Join(dir, "module.wasm")

	//nolint:gosec // the package is the test's
	c := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-buildmode=c-shared", "-o", file, pkg)
	c.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")

	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("wasmtest: go build %s: %w\n%s", pkg, err, out)
	}

	code, err = os.ReadFile(file) //nolint:gosec // as above
	if err != nil {
		return nil, fmt.Errorf("wasmtest: %w", err)
	}

	return code, nil
}
