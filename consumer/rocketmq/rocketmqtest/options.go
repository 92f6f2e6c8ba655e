package rocketmqtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The versions that are known to run.
const (
	DefaultVersion = "5.3.3"
	NewestVersion  = "5.4.0"
	OldVersion     = "4.9.7"
)

// Options say what to start. The zero value is one broker of the default version.
type Options struct {
	// Version is the servers' version: DefaultVersion (when empty), NewestVersion or OldVersion.
	Version string
	// Brokers is how many brokers there are, each a master of its own, named b0, b1, ...; 0 means 1.
	Brokers int
	// Config overrides the brokers' settings, by their names in broker.conf.
	Config map[string]string
	// JVM are flags of the brokers' virtual machines, such as "-Xmx1g". They come after those of the package, which make small
	// machines that start quickly, and so prevail.
	JVM []string
	// Certificate and Key, both in PEM, make the servers speak nothing but TLS, with this certificate for 127.0.0.1, such
	// as [Certificate] makes; empty means that a client may choose, and that the servers make up a certificate, which nobody
	// can verify.
	Certificate, Key []byte
	// AskClients makes servers with a certificate insist on one of their clients as well. They trust none but their own, by which
	// a client may show itself, too.
	AskClients bool
	// AccessKey and SecretKey are a user who may do anything; brokers of version 5 then refuse what nobody has signed, and others
	// what they have not been allowed. Empty means that everybody may do anything.
	AccessKey, SecretKey string

	tls tlsSettings
}

func (o Options) orDefaults() (Options, error) {
	o.Version = cmp.Or(o.Version, DefaultVersion)
	o.Brokers = cmp.Or(o.Brokers, 1)

	if o.Brokers < 0 {
		return o, fmt.Errorf("rocketmqtest: %d brokers; there is at least 1", o.Brokers)
	}

	if !slices.Contains(Versions(), o.Version) {
		return o, fmt.Errorf("rocketmqtest: version %q is not one of %s", o.Version, strings.Join(Versions(), ", "))
	}

	return o, nil
}

// Versions returns the versions that are known to run, the default first.
func Versions() []string { return []string{DefaultVersion, NewestVersion, OldVersion} }
