package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stamp is the form of the time in the name of a file that was put aside.
const stamp = "20060102T150405"

// aside matches what is between the name and the ending of a file that was put aside: the time, and a number when there were
// several in that second.
var aside = regexp.MustCompile(`^-\d{8}T\d{6}(-\d+)?$`)

// due reports whether a file is to be put aside before more bytes are written at a time.
func (r Rotate) due(l *lines, more int64, now time.Time) bool {
	if l.size == 0 {
		return false
	}

	every := time.Duration(r.Every)

	return r.Size > 0 && l.size+more > int64(r.Size) ||
		every > 0 && !l.last.Truncate(every).Equal(now.Truncate(every))
}

// freeName returns a name for a file to be put aside at a time that no file has, packed or not.
func freeName(path string, now time.Time) (string, error) {
	ending := filepath.Ext(path)
	name := strings.TrimSuffix(path, ending) + now.UTC().Format("-"+stamp)

	for n := 1; ; n++ {
		candidate := name + ending
		if n > 1 {
			candidate = name + "-" + strconv.Itoa(n) + ending
		}

		free := true

		for _, packed := range []Compress{CompressNone, CompressGzip, CompressZstd} {
			_, err := os.Lstat(candidate + packed.ending())
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", fmt.Errorf("looking for a free name: %w", err)
			}

			free = free && err != nil
		}

		if free {
			return candidate, nil
		}
	}
}

// unpacked returns the files that were put aside for path and are not packed, oldest first.
func unpacked(path string) ([]string, error) {
	folder, file := filepath.Split(path)
	ending := filepath.Ext(file)
	name := strings.TrimSuffix(file, ending)

	entries, err := os.ReadDir(filepath.Clean(folder))
	if err != nil {
		return nil, fmt.Errorf("looking for files that were put aside: %w", err)
	}

	var all []string

	for _, e := range entries {
		middle, isOurs := strings.CutPrefix(e.Name(), name)
		middle, hasEnding := strings.CutSuffix(middle, ending)

		if isOurs && hasEnding && e.Type().IsRegular() && aside.MatchString(middle) {
			all = append(all, filepath.Join(folder, e.Name()))
		}
	}

	slices.Sort(all)

	return all, nil
}
