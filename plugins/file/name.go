package file

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/internal/value"
)

// ErrName is why a message is rejected that makes no name of a file: a value in it is missing or empty, the name would be too
// long, or it would look like that of a file that was put aside.
var ErrName = errors.New("file: the message makes no name of a file")

// The bounds of what values make, in bytes: file systems take 255 for a name, and rotation and packing add to it.
const (
	longestName = 200
	longestPath = 1 << 10
)

// namer makes the path of a message's file. Values stay inside of the name that they stand in.
type namer struct {
	template value.Template
	folder   string // in which all files are
	rotates  bool
}

// newNamer parses a path with values in braces.
func newNamer(o Options) (*namer, error) {
	t, err := value.ParseTemplate(o.Path)
	if err != nil {
		return nil, err //nolint:wrapcheck // names itself
	}

	before := t.Prefix()

	return &namer{
		template: t, rotates: o.Rotate != (Rotate{}), folder: before[:strings.LastIndexAny(before, separators)+1],
	}, nil
}

// separators end a name in a path, here or elsewhere.
const separators = `/\`

// fixed returns the path when it is the same for all messages.
func (n *namer) fixed() (string, bool) { return n.template.Fixed() }

// of returns the path for a message. It fails with [ErrName], and for a body that is needed and is no JSON.
func (n *namer) of(m *pipeline.Message) (string, error) {
	if path, ok := n.fixed(); ok {
		return path, nil
	}

	empty := false

	path, err := n.template.Text(value.Of(m), func(text string) string {
		empty = empty || text == ""

		return escape(text)
	})

	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrName, err)
	case empty:
		return "", fmt.Errorf("%w: a value in %q is empty", ErrName, n.template)
	}

	return path, n.check(path[len(n.folder):])
}

// looksAside is what is in the names of files that were put aside, and of those that are packed.
var looksAside = regexp.MustCompile(`-\d{8}T\d{6}(-\d+)?(\.|$)`)

// check refuses what is left to refuse of the part of a path that values have made.
func (n *namer) check(path string) error {
	for name := range strings.SplitSeq(path, "/") {
		if len(name) > longestName {
			return fmt.Errorf("%w: %.50q... has %d bytes, of which %d are possible", ErrName, name, len(name), longestName)
		}
	}

	switch {
	case len(path) > longestPath:
		return fmt.Errorf("%w: %.50q... has %d bytes, of which %d are possible", ErrName, path, len(path), longestPath)
	case !filepath.IsLocal(path): // names of devices, on some systems
		return fmt.Errorf("%w: %q leads elsewhere", ErrName, path)
	case n.rotates && looksAside.MatchString(filepath.Base(path)):
		return fmt.Errorf("%w: %q looks like a file that was put aside", ErrName, path)
	}

	return nil
}

// escape makes of any text a part of a name: what separates names, hides them or is forbidden in them somewhere is written as
// %XX, as in a URL. Different texts stay different.
func escape(text string) string {
	var b strings.Builder

	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])

		if i == 0 && r == '.' || !isPlain(r, size) {
			for _, c := range []byte(text[i : i+size]) {
				_, _ = fmt.Fprintf(&b, "%%%02X", c)
			}
		} else {
			_, _ = b.WriteString(text[i : i+size])
		}

		i += size
	}

	return b.String()
}

// isPlain reports whether all file systems take a character in a name.
func isPlain(r rune, size int) bool {
	return (r != utf8.RuneError || size > 1) && unicode.IsPrint(r) && !strings.ContainsRune(`/\%:*?"<>|`, r)
}
