package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// newFile is a file that a command writes for people to go on with.
type newFile struct{ name, text string }

// writeNew writes files into a directory, which is made when it is missing. It overwrites nothing: when one of them is there,
// none is written.
func (a *app) writeNew(dir string, files []newFile) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err //nolint:wrapcheck // it names the directory; the commands put their names before it
	}

	for _, file := range files {
		if _, err := os.Lstat(filepath.Join(dir, file.name)); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is there already; remove it, or name another directory", filepath.Join(dir, file.name))
		}
	}

	for _, file := range files {
		path := filepath.Join(dir, file.name)
		if err := os.WriteFile(path, []byte(file.text), 0o600); err != nil {
			return err //nolint:wrapcheck // as above
		}

		_, _ = fmt.Fprintf(a.Out, "wrote %s\n", path)
	}

	return nil
}
