package jobfile

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/plugins"
)

// hidden is what stands for a secret wherever one would be printed; [plugins.Secret] shows the same.
const hidden = "***"

// shortestSecret is what a secret must have, in bytes, to be looked for in output. Shorter ones would be found everywhere.
const shortestSecret = 4

// Redactor takes secrets out of text that others have made, such as errors and log lines. The zero value changes nothing.
// It is safe for concurrent use.
type Redactor struct {
	secrets  []plugins.Secret
	replacer *strings.Replacer
}

// NewRedactor returns a redactor of some secrets, also in the forms that they have inside of JSON and of Go's quotes.
// Secrets of less than four bytes are left alone: they would be found everywhere.
func NewRedactor(secrets []plugins.Secret) Redactor {
	var forms []string

	for _, s := range secrets {
		text := s.Reveal()
		if len(text) < shortestSecret {
			continue
		}

		quoted := strings.Trim(strconv.Quote(text), `"`)
		forms = append(forms, text, quoted)

		if inJSON, err := json.Marshal(text); err == nil {
			forms = append(forms, strings.Trim(string(inJSON), `"`))
		}
	}

	// The longest first, so that a secret that contains another one goes as a whole.
	slices.SortFunc(forms, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}

		return strings.Compare(a, b)
	})

	pairs := make([]string, 0, 2*len(forms))
	for _, form := range slices.Compact(forms) {
		pairs = append(pairs, form, hidden)
	}

	if len(pairs) == 0 {
		return Redactor{}
	}

	return Redactor{secrets: secrets, replacer: strings.NewReplacer(pairs...)}
}

// And returns a redactor of the secrets of both.
func (r Redactor) And(other Redactor) Redactor {
	return NewRedactor(slices.Concat(r.secrets, other.secrets))
}

// Redact returns text without the secrets.
func (r Redactor) Redact(text string) string {
	if r.replacer == nil {
		return text
	}

	return r.replacer.Replace(text)
}

// Writer returns a writer that passes on to w what is written to it, without the secrets. A secret that is cut in two by
// separate writes is not found, so write whole lines.
func (r Redactor) Writer(w io.Writer) io.Writer {
	if r.replacer == nil {
		return w
	}

	return redacting{r: r, w: w}
}

type redacting struct {
	r Redactor
	w io.Writer
}

func (w redacting) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.w, w.r.Redact(string(p))); err != nil {
		return 0, fmt.Errorf("jobfile: %w", err)
	}

	return len(p), nil
}
