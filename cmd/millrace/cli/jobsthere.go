package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/cmd/millrace/control"
)

// askedText is of the commands that ask jobs.
const askedText = `The jobs of "millrace run" on the embedded broker are found by its directory. All others (on RocketMQ, on
another host, or in a program of your own that serves package actors/admin) are found by --admin HOST:PORT, or a URL. The token of
the endpoint is taken from the variable MILLRACE_ADMIN_TOKEN, or from the file that --admin-token-file names; not from the command
line, which others can see.`

// tokenVariable has the token of the admin endpoint, where it is served and where it is asked.
const tokenVariable = "MILLRACE_ADMIN_TOKEN" //nolint:gosec // the name of a variable

// askTime is how long jobs may take to answer; a seek waits for running work of its queue.
const askTime = 30 * time.Second

// askedFlags say where jobs are asked.
type askedFlags struct {
	broker, admin, tokenFile string
}

func (f *askedFlags) add(flags *pflag.FlagSet) {
	flags.StringVarP(&f.broker, brokerFlag, "b", defaultBroker, brokerHelp)
	f.addAdmin(flags)
}

// addAdmin adds the flags that name an endpoint.
func (f *askedFlags) addAdmin(flags *pflag.FlagSet) {
	flags.StringVar(&f.admin, "admin", "",
		"ask the admin endpoint at this `address`, such as 127.0.0.1:7411 or https://mill.example")
	flags.StringVar(&f.tokenFile, "admin-token-file", "", "a `file` with the token of the endpoint")
}

// jobsThere are the jobs that a command asks.
type jobsThere struct {
	*admin.Client

	close func()
	// place says where they are.
	place string
}

// reach returns the jobs that the flags mean. They must be closed.
func (a *app) reach(ctx context.Context, f askedFlags) (*jobsThere, error) {
	if f.admin != "" {
		return a.reachEndpoint(f)
	}

	if f.tokenFile != "" {
		return nil, usagef("--admin-token-file is of no use without --admin, which says where the endpoint is")
	}

	dir, err := a.directory(f.broker)
	if err != nil {
		return nil, err
	}

	client, err := control.Connect(ctx, dir)
	if errors.Is(err, control.ErrNotServed) {
		return nil, fmt.Errorf("nothing runs on the broker in %s; start a job with `millrace run`, "+
			"name another one with --broker, or an admin endpoint with --admin", dir)
	}

	if err != nil {
		return nil, err //nolint:wrapcheck // it says what is wrong
	}

	return &jobsThere{Client: client.Admin(), close: client.Close, place: "on the broker in " + dir}, nil
}

func (a *app) reachEndpoint(f askedFlags) (*jobsThere, error) {
	if f.broker != defaultBroker {
		return nil, usagef("--broker and --admin name two places; use one of them")
	}

	base, err := endpoint(f.admin)
	if err != nil {
		return nil, err
	}

	token, err := a.token(f.tokenFile)
	if err != nil {
		return nil, err
	}

	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}

	return &jobsThere{
		Client: &admin.Client{Base: base, Token: token, HTTP: &http.Client{Transport: transport, CheckRedirect: stay}},
		close:  transport.CloseIdleConnections, place: "at " + base,
	}, nil
}

// stay follows no redirection: the token is for one place.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// endpoint returns the URL that an address means.
func endpoint(address string) (string, error) {
	text := address
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}

	u, err := url.Parse(text)

	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return "", usagef("--admin is %q; write it like 127.0.0.1:7411 or https://mill.example", address)
	case u.User != nil:
		return "", usagef("--admin has a name or a password in it, which others can see; put the token into %s or into a file "+
			"for --admin-token-file", tokenVariable)
	}

	return strings.TrimRight(u.String(), "/"), nil
}

// token returns the token that is sent, empty for none.
func (a *app) token(file string) (string, error) {
	if file == "" {
		if a.Variables.Lookup == nil {
			return "", nil
		}

		token, _ := a.Variables.Lookup(tokenVariable)

		return token, nil
	}

	if a.Variables.ReadFile == nil {
		return "", fmt.Errorf("--admin-token-file: no files can be read here; use %s", tokenVariable)
	}

	text, err := a.Variables.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("--admin-token-file %s: %w", file, err)
	}

	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, "\r\n") {
		return "", fmt.Errorf("--admin-token-file %s: it must have the token and nothing else", file)
	}

	return token, nil
}

// do asks something, and says of what goes wrong what to do about it.
func (t *jobsThere) do(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()

	return t.told(ask(ctx))
}

// told adds to an error what to do about it.
func (t *jobsThere) told(err error) error {
	switch {
	case errors.Is(err, admin.ErrUnreachable):
		return fmt.Errorf("the jobs %s do not answer; is `millrace run` or the program there still running, "+
			"and serves its admin endpoint there? %w", t.place, err)
	case errors.Is(err, admin.ErrToken):
		return fmt.Errorf("%s: %w; put it into %s, or into a file for --admin-token-file", t.place, err, tokenVariable)
	case errors.Is(err, admin.ErrNotMillrace):
		return fmt.Errorf("%s: %w; `millrace run --admin ADDRESS` serves one, and says where", t.place, err)
	default:
		return err
	}
}
