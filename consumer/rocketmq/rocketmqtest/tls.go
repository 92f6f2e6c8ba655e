package rocketmqtest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// tlsSettings are what servers and their clients are told of TLS. The zero value leaves it to them.
type tlsSettings struct {
	jvm    []string    // of the servers
	client *tls.Config // of our own questions
}

// writeTLS writes down the certificate of the options, if they have one.
func writeTLS(dir string, o Options) (s tlsSettings, err error) {
	if len(o.Certificate) == 0 {
		return s, nil
	}

	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(o.Certificate) {
		return s, errors.New("rocketmqtest: the certificate is not in PEM")
	}

	cert, key := filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")

	if err := errors.Join(os.WriteFile(cert, o.Certificate, 0o600), os.WriteFile(key, o.Key, 0o600)); err != nil {
		return s, fmt.Errorf("rocketmqtest: %w", err)
	}

	pair, err := tls.X509KeyPair(o.Certificate, o.Key)
	if err != nil {
		return s, fmt.Errorf("rocketmqtest: %w", err)
	}

	s.client = &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
	s.jvm = []string{
		"-Dtls.server.mode=enforcing", "-Dtls.test.mode.enable=false",
		"-Dtls.server.certPath=" + cert, "-Dtls.server.keyPath=" + key,
		"-Dtls.enable=true", // of the broker, a client of the name server, which verifies nobody
		"-Dtls.client.authServer=false",
	}

	if o.AskClients {
		s.jvm = append(s.jvm, "-Dtls.server.need.client.auth=require", "-Dtls.server.authClient=true",
			"-Dtls.server.trustCertPath="+cert, "-Dtls.client.certPath="+cert, "-Dtls.client.keyPath="+key)
	}

	return s, nil
}
