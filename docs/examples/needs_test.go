package examples_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/millrace/millrace/plugins/servertest"
)

// prepare starts what an example needs beside the command and adds the variables of its job file to the world. It returns
// what looks at the outcome where the README cannot show it.
type prepare func(t *testing.T, w *world) (check func(*testing.T))

// needs returns what examples need, by their folders.
func needs() map[string]prepare {
	return map[string]prepare{
		"fan-out":          shipping,
		"http-lookup":      stations,
		"logs-to-postgres": postgres,
		"python":           python,
		"redis-stream":     redisServer,
		"webhook":          webhook,
	}
}

func postgres(t *testing.T, w *world) func(*testing.T) {
	t.Helper()

	dsn := servertest.StartPostgres(t).DSN()
	w.env = append(w.env, "DSN="+dsn)

	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = db.Close(t.Context()) })

	table, err := os.ReadFile(filepath.Join(w.dir, "table.sql"))
	if err != nil {
		t.Fatal(err)
	}

	if _, err := db.Exec(t.Context(), string(table)); err != nil {
		t.Fatal(err)
	}

	return func(t *testing.T) {
		t.Helper()

		rows, err := db.Query(t.Context(), "SELECT concat_ws(' ', id, host, date_part('second', at), level, service, message) FROM logs ORDER BY id")
		if err != nil {
			t.Fatal(err)
		}

		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}

		same(t, got, "f1/0 web-1 0 INFO cart added 2 of p1", "f1/2 web-1 2 ERROR pay the bank did not answer", "f2/0 web-2 0 INFO login user u7")
	}
}

func python(t *testing.T, _ *world) func(*testing.T) {
	t.Helper()

	_, err := exec.LookPath("python3")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal("there is no python3, and CI is set")
	}

	if err != nil {
		t.Skip("there is no python3 here")
	}

	return func(*testing.T) {}
}

func redisServer(t *testing.T, w *world) func(*testing.T) {
	t.Helper()

	server := servertest.StartRedis(t)
	w.env = append(w.env, "REDIS_URL="+server.URL())

	return func(t *testing.T) {
		t.Helper()

		client := redis.NewClient(&redis.Options{Addr: server.Addr, Password: server.Password})
		defer func() { _ = client.Close() }()

		entries, err := client.XRange(t.Context(), "views:north", "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}

		var got []string
		for _, e := range entries {
			got = append(got, fmt.Sprint(e.Values["visitor"], " ", e.Values["page"]))
		}

		same(t, got, "v1 /", "v1 /cart")

		last, err := client.HGetAll(t.Context(), "last:v1").Result()
		if err != nil || last["page"] != "/cart" || last["shop"] != "north" {
			t.Errorf("the last page of v1 is %v, error %v", last, err)
		}
	}
}

// shipping is a system that does not take the first request.
func shipping(t *testing.T, w *world) func(*testing.T) {
	t.Helper()

	server := startServer(t, 1)
	w.env = append(w.env, "SHIPPING="+server.URL)

	return func(t *testing.T) {
		t.Helper()

		got := server.bodies()
		first := slices.Index(got, `{"customer":"c1","order":1}`)

		if first > slices.Index(got, `{"customer":"c1","order":3}`) {
			t.Errorf("the orders of c1 came out of turn: %q", got)
		}

		slices.Sort(got)
		same(t, got, `{"customer":"c1","order":1}`, `{"customer":"c1","order":3}`, `{"customer":"c2","order":2}`)
	}
}

// stations is a server that is asked about two stations, once about each.
func stations(t *testing.T, w *world) func(*testing.T) {
	t.Helper()

	var (
		mu    sync.Mutex
		asked []string
	)

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()

		asked = append(asked, r.Method+" "+r.URL.Path)

		switch r.URL.Path {
		case "/stations/XA":
			_, _ = io.WriteString(w, `{"id":"XA","name":"Alpha","country":"DE","since":1994}`)
		case "/stations/XB":
			_, _ = io.WriteString(w, `{"id":"XB","name":"Beta","country":"FR","since":2001}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)

	w.env = append(w.env, "STATIONS="+server.URL)

	return func(t *testing.T) {
		t.Helper()

		slices.Sort(asked)
		same(t, asked, "GET /stations/XA", "GET /stations/XB", "GET /stations/XC")
	}
}

func webhook(t *testing.T, w *world) func(*testing.T) {
	t.Helper()

	server := startServer(t, 0)
	w.env = append(w.env, "HOOK_URL="+server.URL, "HOOK_TOKEN=open sesame")

	return func(t *testing.T) {
		t.Helper()

		got := server.bodies()
		slices.Sort(got)
		same(t, got, `{"text":"created: report.pdf"}`, `{"text":"deleted: old.pdf"}`)

		if server.token != "Bearer open sesame" {
			t.Errorf("the token is %q", server.token)
		}
	}
}

// server is one that is asked by the HTTP sink.
type server struct {
	*httptest.Server

	mu sync.Mutex
	// refuse is how many requests are still refused; guarded by mu.
	refuse int
	// taken are the bodies, token the last one; guarded by mu.
	taken []string
	token string
}

// startServer starts a server that refuses the first requests.
func startServer(t *testing.T, refuse int) *server {
	t.Helper()

	s := &server{refuse: refuse}
	s.Server = httptest.NewServer(http.HandlerFunc(s.take))

	t.Cleanup(s.Close)

	return s
}

func (s *server) take(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)

	s.mu.Lock()
	defer s.mu.Unlock()

	if s.refuse > 0 {
		s.refuse--

		w.WriteHeader(http.StatusServiceUnavailable)

		return
	}

	s.taken, s.token = append(s.taken, string(body)), r.Header.Get("Authorization")
}

// bodies returns what has been taken.
func (s *server) bodies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.taken)
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()

	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}
