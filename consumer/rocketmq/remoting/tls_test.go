package remoting_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
)

// authority returns a certificate for the hosts that signs itself, and a pool that trusts it.
func authority(t *testing.T, hosts ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()

	cert, key := rocketmqtest.Certificate(t, hosts...)

	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}

	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(cert) {
		t.Fatal("the certificate is not in PEM")
	}

	return pair, pool
}

// secured is listen below TLS: the handshake is made when the test reads.
func secured(t *testing.T, certificate tls.Certificate) (*peer, func(t *testing.T) *side) {
	t.Helper()

	p := listen(t)

	return p, func(t *testing.T) *side {
		t.Helper()

		return &side{tls.Server(p.accept(t), &tls.Config{Certificates: []tls.Certificate{certificate}})}
	}
}

func TestTLSIsSpokenWithWhoIsTrusted(t *testing.T) {
	t.Parallel()

	byAddress, trustAddress := authority(t, "127.0.0.1")
	byName, trustName := authority(t, "broker.example")
	stranger, _ := authority(t, "broker.example", "127.0.0.1")

	for name, c := range map[string]struct {
		certificate tls.Certificate
		config      *tls.Config
	}{
		"by its address":        {byAddress, &tls.Config{RootCAs: trustAddress}},
		"by a given name":       {byName, &tls.Config{RootCAs: trustName, ServerName: "broker.example"}},
		"anybody, when told so": {stranger, &tls.Config{InsecureSkipVerify: true}},
	} {
		p, accept := secured(t, c.certificate)
		client := newClient(t, remoting.Options{TLS: c.config})
		done := begin(within(t, patience), client, p.addr(), ask(remoting.Heartbeat, name))
		s := accept(t)
		s.answer(t, s.next(t), remoting.Success)
		answered(t, done, name)
		client.Close()
	}
}

func TestTLSIsNotSpokenWithWhoIsNotTrusted(t *testing.T) {
	t.Parallel()

	byName, trustName := authority(t, "broker.example")
	stranger, _ := authority(t, "broker.example", "127.0.0.1")

	for name, c := range map[string]struct {
		certificate tls.Certificate
		config      *tls.Config
	}{
		"by default":                     {stranger, &tls.Config{}},
		"signed by somebody else":        {stranger, &tls.Config{RootCAs: trustName, ServerName: "broker.example"}},
		"a name that is not the address": {byName, &tls.Config{RootCAs: trustName}},
	} {
		p, accept := secured(t, c.certificate)
		client := newClient(t, remoting.Options{TLS: c.config})
		done := begin(within(t, patience), client, p.addr(), ask(remoting.Heartbeat, name))
		s := accept(t)
		s.gone(t)

		r := wait(t, done)

		end, ok := errors.AsType[*remoting.ConnectionError](r.err)
		if _, verified := errors.AsType[*tls.CertificateVerificationError](r.err); !ok || end.Sent || !verified {
			t.Errorf("%s: got %+v, %v", name, r.response, r.err)
		}
	}
}

func TestATLSServerThatSaysNothingIsGivenUp(t *testing.T) {
	t.Parallel()

	p := listen(t)
	client := newClient(t, remoting.Options{TLS: &tls.Config{}, DialTimeout: 50 * time.Millisecond})
	r := wait(t, begin(within(t, patience), client, p.addr(), ask(remoting.Heartbeat, "1")))

	if end, ok := errors.AsType[*remoting.ConnectionError](r.err); !ok || end.Sent {
		t.Fatalf("got %+v, %v", r.response, r.err)
	}

	p.accept(t).gone(t)
}
