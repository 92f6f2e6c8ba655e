package admin

import (
	"fmt"
	"net"
	"net/netip"

	"go.uber.org/zap"
)

// Options say what is served, and to whom.
type Options struct {
	// Address is where [Serve] listens, as host:port. A host that is not a loopback one needs a Token; no host means all
	// addresses of the machine.
	Address string
	// Token is what requests must have in their header "Authorization: Bearer …"; /healthz and /readyz need none. Empty means
	// none, and that only requests for localhost or for an IP address are answered, which keeps web pages out that rebind
	// names. It has at least 16 bytes.
	Token string
	// Private says that the listener lets nobody in but the user of the process, as a Unix socket does: neither a token nor a
	// certain host is asked for.
	Private bool
	// Jobs are served. Required.
	Jobs *Jobs
	// DeadLetters are served, too; nil means that there are none.
	DeadLetters *DeadLetters
	// Redact takes secrets out of what is answered; nil changes nothing.
	Redact func(string) string
	// Routes are served beside the package's own.
	Routes []Route
	// Logger gets what goes wrong with the server; nil means none.
	Logger *zap.Logger
}

// shortestToken is what a token must have in bytes: enough that nobody finds it by trying.
const shortestToken = 16

// validate reports what would let strangers in.
func (o *Options) validate() error {
	if o.Token != "" && len(o.Token) < shortestToken {
		return fmt.Errorf("admin: the token has %d bytes; use one of at least %d, such as `openssl rand -hex 16` writes",
			len(o.Token), shortestToken)
	}

	host, _, err := net.SplitHostPort(o.Address)
	if err != nil {
		return fmt.Errorf("admin: the address %q: %w; write it as 127.0.0.1:7411", o.Address, err)
	}

	if o.Token == "" && !isLoopback(host) {
		return fmt.Errorf("admin: the address %q can be reached by others, so it needs a token; "+
			"give one, or use 127.0.0.1", o.Address)
	}

	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}

	ip, err := netip.ParseAddr(host)

	return err == nil && ip.IsLoopback()
}
