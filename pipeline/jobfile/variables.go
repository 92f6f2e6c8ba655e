package jobfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/millrace/millrace/plugins"
)

// Variables is where the values of `${…}` come from. With the zero value no variable is set and no file can be read.
type Variables struct {
	// Lookup returns the value of ${NAME}, and whether it is set.
	Lookup func(name string) (string, bool)
	// ReadFile returns the text of ${file:PATH}.
	ReadFile func(path string) ([]byte, error)
}

// maxSecretFile bounds what ${file:PATH} reads.
const maxSecretFile = 64 << 10

// Environment returns the variables of the process: its environment, and the files of up to 64 KiB that it can read.
func Environment() Variables {
	return Variables{Lookup: os.LookupEnv, ReadFile: readSecret}
}

func readSecret(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the path comes from the operator
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says what the file is for
	}

	text, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}

	if len(text) > maxSecretFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxSecretFile)
	}

	return text, nil
}

// expansion is what came of the variables in a text.
type expansion struct {
	text string
	// used: there was a variable.
	used bool
	// secrets are what must not be printed.
	secrets []plugins.Secret
}

// expand replaces ${NAME}, ${NAME:-default} and ${file:PATH} in text; $${ stands for ${ itself. What has been put in is not
// looked at again. It fails for the first variable that has no value.
func (v Variables) expand(text string) (expansion, error) {
	var (
		e expansion
		b strings.Builder
	)

	for {
		before, after, found := strings.Cut(text, "${")
		if !found {
			b.WriteString(text)

			e.text = b.String()

			return e, nil
		}

		if escaped, ok := strings.CutSuffix(before, "$"); ok {
			b.WriteString(escaped + "${")

			text, e.used = after, true

			continue
		}

		name, rest, closed := strings.Cut(after, "}")
		if !closed {
			return e, errors.New("a ${ is not closed by }; write $${ for the characters ${ themselves")
		}

		value, secret, err := v.value(name)
		if err != nil {
			return e, err
		}

		if secret && value != "" {
			e.secrets = append(e.secrets, plugins.NewSecret(value))
		}

		b.WriteString(before + value)

		text, e.used = rest, true
	}
}

// value returns what stands for the inside of ${…}.
func (v Variables) value(inside string) (value string, secret bool, err error) {
	if path, ok := strings.CutPrefix(inside, "file:"); ok {
		value, err = v.file(path)

		return value, true, err
	}

	name, fallback, hasFallback := strings.Cut(inside, ":-")
	if !legalVariable(name) {
		return "", false, fmt.Errorf("${%s} is no variable; write ${NAME}, ${NAME:-default} or ${file:PATH}", inside)
	}

	if v.Lookup != nil {
		value, _ = v.Lookup(name)
	}

	switch {
	case value != "":
		return value, soundsSecret(name), nil
	case hasFallback:
		return fallback, false, nil
	default:
		return "", false, fmt.Errorf("the environment variable %s is not set; set it, or give a default: ${%s:-…}", name, name)
	}
}

func (v Variables) file(path string) (string, error) {
	if path == "" || v.ReadFile == nil {
		return "", fmt.Errorf("${file:%s} cannot be read here; name a file that can", path)
	}

	text, err := v.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("${file:%s} cannot be read: %w", path, err)
	}

	return strings.TrimRight(string(text), "\r\n"), nil
}

func legalVariable(name string) bool {
	for i, r := range name {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}

	return name != ""
}

// soundsSecret reports whether a variable's name says that its value is not for everybody.
func soundsSecret(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' })

	return slices.ContainsFunc(words, func(word string) bool {
		switch word {
		case "key", "secret", "password", "passwd", "pass", "pw", "pwd", "token", "credential", "credentials", "dsn", "auth",
			"apikey", "passphrase":
			return true
		default:
			return false
		}
	})
}
