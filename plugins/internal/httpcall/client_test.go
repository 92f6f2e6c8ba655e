package httpcall_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/internal/httpcall"
	"github.com/millrace/millrace/plugins/internal/trust"
)

func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()

	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)

	return server.URL
}

func client(t *testing.T, c httpcall.Config) *httpcall.Client {
	t.Helper()

	if c.MaxAnswer == 0 {
		c.MaxAnswer = 1 << 20
	}

	client, err := httpcall.New(c)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(client.Close)

	return client
}

func get(ctx context.Context, c *httpcall.Client, url string) (string, error) {
	body, err := c.Do(ctx, httpcall.Request{Method: http.MethodGet, URL: url, WantBody: true})

	return string(body), err
}

func statuses(t *testing.T, texts ...string) []httpcall.Status {
	t.Helper()

	all := make([]httpcall.Status, len(texts))

	for i, text := range texts {
		if err := all[i].UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}

	return all
}

func TestTheStatusSaysWhatBecomesOfAMessage(t *testing.T) {
	t.Parallel()

	const ok, again, never = "ok", "again", "never"

	chosen := httpcall.Config{Accept: statuses(t, "2xx", "409"), Retry: statuses(t, "404", "503", "3XX")}

	for _, c := range []struct {
		config httpcall.Config
		status int
		want   string
	}{
		{httpcall.Config{}, 200, ok},
		{httpcall.Config{}, 204, ok},
		{httpcall.Config{}, 302, again},
		{httpcall.Config{}, 400, never},
		{httpcall.Config{}, 401, again},
		{httpcall.Config{}, 403, again},
		{httpcall.Config{}, 404, never},
		{httpcall.Config{}, 407, again},
		{httpcall.Config{}, 408, again},
		{httpcall.Config{}, 425, again},
		{httpcall.Config{}, 429, again},
		{httpcall.Config{}, 499, never},
		{httpcall.Config{}, 500, again},
		{httpcall.Config{}, 503, again},
		{chosen, 299, ok},
		{chosen, 409, ok},
		{chosen, 404, again},
		{chosen, 503, again},
		{chosen, 302, again},
		{chosen, 500, never},
		{chosen, 429, never},
		{chosen, 403, never},
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c.status) })
		_, err := get(t.Context(), client(t, c.config), url)

		got := again

		switch {
		case err == nil:
			got = ok
		case pipeline.IsRejected(err):
			got = never
		}

		if got != c.want {
			t.Errorf("%d with %+v: %s (%v), want %s", c.status, c.config, got, err, c.want)
		}

		if status, isStatus := errors.AsType[*httpcall.StatusError](err); err != nil && (!isStatus || status.Status != c.status) {
			t.Errorf("%d: the error is %v", c.status, err)
		}
	}
}

func TestTheServerSaysWhenToTryAgain(t *testing.T) {
	t.Parallel()

	for header, want := range map[string]time.Duration{
		"": 0, "0": 0, "-5": 0, "soon": 0, "7": 7 * time.Second, " 7 ": 7 * time.Second, "99999999": 24 * time.Hour,
		"99999999999999999999": 0, "Thu, 01 Jan 1970 00:00:00 GMT": 0, "Fri, 31 Dec 9999 23:59:59 GMT": 24 * time.Hour,
	} {
		for _, status := range []int{429, 503, 404} {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", header)
				w.WriteHeader(status)
			})

			_, err := get(t.Context(), client(t, httpcall.Config{}), url)
			delay, asked := pipeline.RetryDelay(err)

			if status == 404 {
				if asked || !pipeline.IsRejected(err) {
					t.Errorf("a rejection with Retry-After %q: %v", header, err)
				}
			} else if delay != want || asked != (want > 0) {
				t.Errorf("Retry-After %q: delay %v (%t), want %v", header, delay, asked, want)
			}
		}
	}
}

func TestRedirectionsAreNotFollowedButShown(t *testing.T) {
	t.Parallel()

	other := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the redirection was followed") })
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other+"/new?token=hush", http.StatusPermanentRedirect)
	})

	_, err := get(t.Context(), client(t, httpcall.Config{}), url+"/old")
	if err == nil || pipeline.IsRejected(err) || !strings.Contains(err.Error(), other+"/new") {
		t.Errorf("the error is %v, want one to try again that names the new address", err)
	}

	if strings.Contains(err.Error(), "hush") {
		t.Errorf("the error tells a secret: %v", err)
	}
}

func TestAnAnswerIsBounded(t *testing.T) {
	t.Parallel()

	endless := func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 4<<10)); err != nil {
				return
			}
		}
	}
	exact := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 100)) }
	c := client(t, httpcall.Config{MaxAnswer: 100})

	if body, err := get(t.Context(), c, serve(t, exact)); err != nil || len(body) != 100 {
		t.Errorf("an answer as long as allowed: %d bytes, %v", len(body), err)
	}

	_, err := get(t.Context(), c, serve(t, endless))
	if !pipeline.IsRejected(err) || !strings.Contains(err.Error(), "max_answer") {
		t.Errorf("the error is %v, want a rejection that names the option", err)
	}

	// What nobody wants to read must not be waited for either.
	if _, err := c.Do(t.Context(), httpcall.Request{Method: http.MethodPost, URL: serve(t, endless)}); err != nil {
		t.Error(err)
	}

	_, err = get(t.Context(), c, serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		endless(w, r)
	}))
	if err == nil || len(err.Error()) > 1200 {
		t.Errorf("an endless refusal: %v", err)
	}

	_, err = get(t.Context(), c, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
	}))
	if _, ok := errors.AsType[*httpcall.UnreachableError](err); !ok {
		t.Errorf("a header of a megabyte: %v", err)
	}
}

func TestTheTimeoutBoundsTheWholeAnswer(t *testing.T) {
	t.Parallel()

	for name, answer := range map[string]http.HandlerFunc{
		"no answer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"half an answer": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()

			<-r.Context().Done()
		},
	} {
		_, err := get(t.Context(), client(t, httpcall.Config{Timeout: 50 * time.Millisecond}), serve(t, answer))

		_, unreachable := errors.AsType[*httpcall.UnreachableError](err)
		if !unreachable || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "within 50ms") {
			t.Errorf("%s: the error is %v", name, err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err = get(ctx, client(t, httpcall.Config{Timeout: time.Hour}), serve(t, answer))

		cancel()

		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: the error is %v, want the context's", name, err)
		}
	}
}

func TestSecretsAreSentAndNotTold(t *testing.T) {
	t.Parallel()

	secret := plugins.NewSecret("hush")

	for want, auth := range map[string]httpcall.Auth{
		"Bearer hush":        {Bearer: secret},
		"Basic bWU6aHVzaA==": {User: "me", Password: secret},
		"hush":               {Header: "X-Key", Secret: secret},
	} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Authorization") + r.Header.Get("X-Key"); got != want || r.Host != "other" {
				t.Errorf("got %q of host %s, want %q", got, r.Host, want)
			}

			w.WriteHeader(http.StatusForbidden)
		})
		c := client(t, httpcall.Config{Auth: auth, Headers: map[string]string{"Host": "other"}})

		for _, url := range []string{
			strings.Replace(url, "//", "//me:hush@", 1) + "/path?token=hush",
			"http://127.0.0.1:1/path?token=hush", "http://[hush", "ftp://hush@example.org?hush", "",
		} {
			if auth.User == "" && strings.Contains(url, "me:") {
				url = strings.Replace(url, "me:hush@", "", 1)
			}

			_, err := get(t.Context(), c, url)
			if err == nil || strings.Contains(err.Error(), "hush") {
				t.Errorf("the error is %v", err)
			}
		}
	}
}

func TestOnlyTrustedServersAreTalkedTo(t *testing.T) {
	t.Parallel()

	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // it tells of those who do not trust it
	server.StartTLS()
	t.Cleanup(server.Close)

	folder := t.TempDir()
	ca, none := filepath.Join(folder, "ca.pem"), filepath.Join(folder, "none.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})

	if err := errors.Join(os.WriteFile(ca, text, 0o600), os.WriteFile(none, []byte("nothing"), 0o600)); err != nil {
		t.Fatal(err)
	}

	if _, err := get(t.Context(), client(t, httpcall.Config{}), server.URL); err == nil {
		t.Error("a server that nobody knows is trusted")
	}

	for _, c := range []trust.TLS{{CA: ca}, {SkipVerify: true}} {
		if body, err := get(t.Context(), client(t, httpcall.Config{TLS: c}), server.URL); err != nil || body != "hello" {
			t.Errorf("%+v: %q, %v", c, body, err)
		}
	}

	for _, c := range []trust.TLS{{CA: none}, {CA: ca + "x"}, {Cert: ca, Key: none}} {
		if _, err := httpcall.New(httpcall.Config{TLS: c}); err == nil {
			t.Errorf("%+v is no error", c)
		}
	}
}

func TestMistakesInOptionsAreNamed(t *testing.T) {
	t.Parallel()

	for want, options := range map[string]map[string]any{
		"auth: is one of bearer":            {"auth": map[string]any{"bearer": "x", "user": "y"}},
		"auth: a password needs a user":     {"auth": map[string]any{"password": "x"}},
		"auth: header and secret":           {"auth": map[string]any{"header": "x"}},
		"auth: a secret has a line break":   {"auth": map[string]any{"bearer": "x\r\nHost: y"}},
		"tls: cert and key go together":     {"tls": map[string]any{"cert": "x"}},
		`list[0]: "6xx" is no status`:       {"list": []any{"6xx"}},
		`list[1]: "99" is no status`:        {"list": []any{404, 99}},
		`list[0]: "4x" is no status`:        {"list": []any{"4x"}},
		`list[0]: "+40" is no status`:       {"list": []any{"+40"}},
		`list[0]: "teapot" is no status`:    {"list": []any{"teapot"}},
		`list[0]: is a table, should be a `: {"list": []any{map[string]any{}}},
	} {
		var o struct {
			Auth httpcall.Auth     `option:"auth"`
			TLS  trust.TLS         `option:"tls"`
			List []httpcall.Status `option:"list"`
		}

		if err := plugins.Decode(options, &o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: the error is %v, want %s", options, err, want)
		}
	}
}
