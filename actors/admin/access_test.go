package admin_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/millrace/millrace/actors/admin"
)

const token = "0123456789abcdef"

func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()

	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}

	const pausePath = "/api/v1/jobs/job/pause"

	for name, c := range map[string]struct {
		o      admin.Options
		method string
		path   string
		change func(*http.Request)
		want   int
	}{
		"a rebound name":      {path: "/api/v1/status", change: func(r *http.Request) { r.Host = "evil.example:7411" }, want: 421},
		"a rebound probe":     {path: "/healthz", change: func(r *http.Request) { r.Host = "evil.example" }, want: 421},
		"localhost":           {path: "/api/v1/status", change: func(r *http.Request) { r.Host = "localhost:7411" }, want: 200},
		"an address":          {path: "/api/v1/status", change: func(r *http.Request) { r.Host = "[::1]" }, want: 200},
		"a name and a token":  {o: admin.Options{Token: token}, path: "/metrics", change: func(r *http.Request) { r.Host = "mill.example"; r.Header.Set("Authorization", "Bearer "+token) }, want: 200},
		"a private listener":  {o: admin.Options{Private: true}, path: "/api/v1/status", change: func(r *http.Request) { r.Host = "broker" }, want: 200},
		"no token":            {o: admin.Options{Token: token}, path: "/api/v1/status", want: 401},
		"metrics, no token":   {o: admin.Options{Token: token}, path: "/metrics", want: 401},
		"a part of the token": {o: admin.Options{Token: token}, path: "/api/v1/status", change: header("Authorization", "Bearer "+token[:15]), want: 401},
		"no bearer":           {o: admin.Options{Token: token}, path: "/api/v1/status", change: header("Authorization", token), want: 401},
		"a path around it":    {o: admin.Options{Token: token}, path: "/healthz/../api/v1/status", want: 401},
		"a probe, no token":   {o: admin.Options{Token: token}, path: "/healthz", want: 200},
		"the page, no token":  {o: admin.Options{Token: token}, path: "/", want: 200},
		"its files":           {o: admin.Options{Token: token}, path: "/page/app.js", want: 200},
		"no file of it":       {path: "/page/absent.js", want: 404},
		"beside its files":    {path: "/page/../page.go", want: 307},
		"topology, no token":  {o: admin.Options{Token: token}, path: "/api/v1/topology", want: 401},
		"another site":        {method: http.MethodPost, path: pausePath, change: header("Sec-Fetch-Site", "cross-site"), want: 403},
		"another origin":      {method: http.MethodPost, path: pausePath, change: header("Origin", "http://evil.example"), want: 403},
		"a form":              {method: http.MethodPost, path: pausePath, change: header("Content-Type", "text/plain"), want: 415},
		"the wrong method":    {path: pausePath, want: 405},
		"nothing there":       {path: "/api/v1/nothing", want: 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := setup(t, 1)
				if c.method == "" {
					c.method = http.MethodGet
				}

				if a := w.ask(c.o, c.method, c.path, "{}", c.change); a.Code != c.want {
					t.Errorf("%d, want %d: %s", a.Code, c.want, a.Body)
				}
			})
		})
	}
}

func TestThePageMayLoadItsOwnFilesOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		header := setup(t, 1).ask(admin.Options{}, http.MethodGet, "/", "", nil).Header()

		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'none'"} {
			if policy := header.Get("Content-Security-Policy"); !strings.Contains(policy, want) {
				t.Errorf("no %s in %q", want, policy)
			}
		}

		if header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Error(header)
		}
	})
}

func TestAnAddressThatOthersReachNeedsAToken(t *testing.T) {
	t.Parallel()

	for _, o := range []admin.Options{
		{Address: ":0"},
		{Address: "0.0.0.0:0"},
		{Address: "192.0.2.1:0"},
		{Address: "mill.example:0"},
		{Address: "7411"},
		{Address: "127.0.0.1:0", Token: "short"},
	} {
		o.Jobs = new(admin.Jobs)

		if s, err := admin.Serve(o); err == nil {
			_ = s.Close()

			t.Errorf("%+v is served", o)
		}
	}
}

func TestTheEndpointIsServedAndClosed(t *testing.T) {
	t.Parallel()

	s, err := admin.Serve(admin.Options{Address: "127.0.0.1:0", Token: token, Jobs: new(admin.Jobs)})
	if err != nil {
		t.Fatal(err)
	}

	transport := new(http.Transport)
	defer transport.CloseIdleConnections()

	c := &admin.Client{Base: "http://" + s.Address(), Token: token, HTTP: &http.Client{Transport: transport}}

	if status, err := c.Status(t.Context(), ""); err != nil || len(status.Jobs) != 0 {
		t.Errorf("%+v, %v", status, err)
	}

	c.Token = ""
	if _, err := c.Why(t.Context()); err == nil || !strings.Contains(err.Error(), "needs the token") {
		t.Errorf("without the token: %v", err)
	}

	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
