package servertest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestDirectoriesOfKilledTestsAreSwept(t *testing.T) {
	t.Parallel()

	parent := t.TempDir()
	old := time.Now().Add(-25 * time.Hour)

	for name, swept := range map[string]bool{postgresPrefix + "1": true, postgresPrefix + "2": false, "others": false} {
		dir := filepath.Join(parent, name)
		if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
			t.Fatal(err)
		}

		if swept || name == "others" {
			if err := os.Chtimes(dir, old, old); err != nil {
				t.Fatal(err)
			}
		}

		sweep(parent)

		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) != swept {
			t.Errorf("%s: %v", name, err)
		}
	}
}
