// Package trust has the options by which plugins say which servers they trust, and who they are themselves.
package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/millrace/millrace/plugins"
)

// TLS says whom to trust; the zero value trusts whom the system trusts.
type TLS struct {
	// CA is a file of certificates in PEM that are trusted in place of the system's.
	CA string `help:"A file of certificates (PEM) to trust in place of the system's." option:"ca"`
	// Cert and Key are files (PEM) with the client's own certificate; both or none.
	Cert string `help:"A file with the client's own certificate (PEM)." option:"cert"`
	Key  string `help:"A file with the key of the certificate (PEM)."   option:"key"`
	// SkipVerify accepts any certificate, and so any server.
	SkipVerify bool `help:"Accept any certificate, and so anybody in between; for trying out." option:"skip_verify"`
}

var _ plugins.Validator = TLS{}

// Validate refuses a certificate without its key.
func (t TLS) Validate() error {
	if (t.Cert == "") != (t.Key == "") {
		return errors.New("cert and key go together")
	}

	return nil
}

// Config reads the files. It fails when they do not hold what they should.
func (t TLS) Config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.SkipVerify} //nolint:gosec // the operator's choice

	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}

		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("ca: %s holds no certificate in PEM", t.CA)
		}
	}

	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("cert: %w", err)
		}

		c.Certificates = []tls.Certificate{pair}
	}

	return c, nil
}
