package httpcall

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/internal/trust"
)

// Config says how a [Client] calls.
type Config struct {
	// Timeout bounds one request, from dialling to the last byte of the answer. Zero: no bound but the context's.
	Timeout time.Duration
	// MaxAnswer is how much of an answer is read, in bytes.
	MaxAnswer int64
	// Headers go with every request.
	Headers map[string]string
	// Accept are the statuses of success, nil for 2xx. Retry are those of which the next attempt may come out better, nil
	// for 401, 403, 407, 408, 425, 429, 5xx and redirections, which are not followed. All others reject.
	Accept, Retry []Status
	Auth          Auth
	TLS           trust.TLS
}

// Auth is how requests say who sends them; the zero value says nothing.
type Auth struct {
	// Bearer is sent as "Authorization: Bearer ...".
	Bearer plugins.Secret `help:"A token, sent as Authorization: Bearer." option:"bearer"`
	// User and Password are sent as basic authentication.
	User     string         `help:"The name for basic authentication."     option:"user"`
	Password plugins.Secret `help:"The password for basic authentication." option:"password"`
	// Header is the name of a header that carries Secret.
	Header string         `help:"The name of a header that carries the secret, such as X-Api-Key." option:"header"`
	Secret plugins.Secret `help:"What the header carries."                                         option:"secret"`
}

var _ plugins.Validator = Auth{}

// Validate refuses halves and more than one way.
func (a Auth) Validate() error {
	ways := 0

	for _, given := range []bool{a.Bearer.Reveal() != "", a.User != "", a.Header != ""} {
		if given {
			ways++
		}
	}

	switch {
	case ways > 1:
		return errors.New("is one of bearer, user with password, and header with secret")
	case a.Password.Reveal() != "" && a.User == "":
		return errors.New("a password needs a user")
	case (a.Header == "") != (a.Secret.Reveal() == ""):
		return errors.New("header and secret go together")
	case strings.ContainsAny(a.Bearer.Reveal()+a.Secret.Reveal(), "\r\n"):
		return errors.New("a secret has a line break in it, which no header can carry")
	}

	return nil
}

func (a Auth) sign(r *http.Request) {
	switch {
	case a.Bearer.Reveal() != "":
		r.Header.Set("Authorization", "Bearer "+a.Bearer.Reveal())
	case a.User != "":
		r.SetBasicAuth(a.User, a.Password.Reveal())
	case a.Header != "":
		r.Header.Set(a.Header, a.Secret.Reveal())
	}
}

// Status is one status of an answer, such as 429, or a class of them, such as 5xx.
type Status struct{ from, to int }

var (
	_ encoding.TextUnmarshaler = (*Status)(nil)
	_ plugins.Typed            = Status{}
)

// OptionType says that it is a status.
func (Status) OptionType() (name string, values []string) { return "status", nil }

// UnmarshalText parses a number of three digits, of which the last two may be x.
func (s *Status) UnmarshalText(text []byte) error {
	digits, isClass := bytes.CutSuffix(bytes.ToLower(text), []byte("xx"))

	n, err := strconv.Atoi(string(digits))
	if isClass {
		n *= 100
	}

	if err != nil || n < 100 || n > 599 || len(text) != 3 {
		return fmt.Errorf("%q is no status; it is a number such as 429 or a class such as 5xx", text)
	}

	s.from, s.to = n, n
	if isClass {
		s.to = n + 99
	}

	return nil
}

// among reports whether a status is one of several.
func among(status int, of []Status) bool {
	for _, s := range of {
		if s.from <= status && status <= s.to {
			return true
		}
	}

	return false
}
