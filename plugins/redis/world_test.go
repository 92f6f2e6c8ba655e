package redis_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/redis"
	"github.com/millrace/millrace/plugins/servertest"
)

// world is a server, and a connection of the test's own.
type world struct {
	server *servertest.Redis
	names  atomic.Int64
}

// name returns a key that nobody uses.
func (w *world) name() string { return "k" + strconv.FormatInt(w.names.Add(1), 10) }

// do sends a command and returns the answer.
func (w *world) do(tb testing.TB, args ...any) any {
	tb.Helper()

	got, err := w.try(tb, args...)
	if err != nil {
		tb.Fatal(err)
	}

	return got
}

func (w *world) try(tb testing.TB, args ...any) (any, error) {
	tb.Helper()

	client := goredis.NewClient(&goredis.Options{Addr: w.server.Addr, Password: w.server.Password, Protocol: 2, DisableIdentity: true})
	defer func() { _ = client.Close() }()

	return client.Do(context.WithoutCancel(tb.Context()), args...).Result()
}

// list returns what is in a list.
func (w *world) list(tb testing.TB, name string) []string {
	tb.Helper()

	return texts(w.do(tb, "lrange", name, 0, -1))
}

// stream returns the entries of a stream, each as its fields and values joined by spaces.
func (w *world) stream(tb testing.TB, name string) []string {
	tb.Helper()

	var all []string

	entries, _ := w.do(tb, "xrange", name, "-", "+").([]any)
	for _, e := range entries {
		entry, _ := e.([]any)
		all = append(all, strings.Join(texts(entry[1]), " "))
	}

	return all
}

// texts are the texts of an answer that is a list.
func texts(answer any) []string {
	var all []string

	elements, _ := answer.([]any)
	for _, e := range elements {
		text, _ := e.(string)
		all = append(all, text)
	}

	return all
}

func (w *world) make(tb testing.TB, options map[string]any) *redis.Sink {
	tb.Helper()

	all := map[string]any{"url": w.server.URL()}
	maps.Copy(all, options)

	var o redis.Options
	if err := plugins.Decode(all, &o); err != nil {
		tb.Fatal(err)
	}

	sink, err := redis.New(o)
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() { _ = sink.Close() })

	return sink
}

func (w *world) open(tb testing.TB, options map[string]any) *redis.Sink {
	tb.Helper()

	sink := w.make(tb, options)
	if err := sink.Open(tb.Context()); err != nil {
		tb.Fatal(err)
	}

	return sink
}

// proxy hands connections on to a server, as long as it is not held.
type proxy struct {
	addr string
	// held keeps what the server says from the client while it is locked.
	held sync.RWMutex
}

// forward starts a proxy on a listener.
func forward(tb testing.TB, l net.Listener, to string) *proxy {
	tb.Helper()

	p := &proxy{addr: l.Addr().String()}

	var all sync.WaitGroup

	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}

			server, err := new(net.Dialer).DialContext(context.WithoutCancel(tb.Context()), "tcp", to)
			if err != nil {
				_ = client.Close()

				continue
			}

			all.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
			all.Go(func() { _, _ = io.Copy(gate{client, &p.held}, server); _ = client.Close() })
		}
	})

	tb.Cleanup(func() { _ = l.Close(); all.Wait() })

	return p
}

type gate struct {
	net.Conn

	held *sync.RWMutex
}

func (g gate) Write(p []byte) (int, error) {
	g.held.RLock()
	defer g.held.RUnlock()

	return g.Conn.Write(p)
}

func listen(tb testing.TB) net.Listener {
	tb.Helper()

	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}

	return l
}

// certificate makes a certificate for this machine and a file that tells whom to trust.
func certificate(tb testing.TB) (own tls.Certificate, ca string) {
	tb.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}

	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		tb.Fatal(err)
	}

	ca = filepath.Join(tb.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		tb.Fatal(err)
	}

	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca
}
