package remoting

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"time"

	"go.uber.org/zap"
)

// The defaults of Options.
const (
	DefaultDialTimeout = 3 * time.Second
	DefaultCallTimeout = 3 * time.Second
	DefaultMaxCalls    = 4096
)

// Options are the settings of a Client. The zero value talks to servers that ask for nothing.
type Options struct {
	// Credentials sign each request, one-way ones too; zero means that none is signed.
	Credentials Credentials
	// TLS is used on every connection; nil means none. As with everything of crypto/tls the server is verified unless it
	// says otherwise: RootCAs takes a private authority, and an empty ServerName means the host of the address. It must
	// not be changed any more.
	TLS *tls.Config
	// Greet is called with each new connection before any call can use it, also with one that follows a lost one; nil
	// means that nothing has to be said first. When it fails the connection is closed and counts as not made. Its context
	// ends after DialTimeout.
	Greet func(ctx context.Context, conn *Conn) error
	// Handle answers the requests that servers send to us; nil, also as an answer, means [NotSupported]. The answer's
	// Code, Remark, Ext and Body are used, and only when the request is not one way. Every request has a goroutine of its
	// own; 64 a connection run at a time, and what comes above that is dropped and logged. The context ends with the
	// connection. A panic becomes a [SystemError].
	Handle func(ctx context.Context, addr string, request *Command) *Command
	// DialTimeout bounds the making of a connection, TLS included; 0 means 3 s.
	DialTimeout time.Duration
	// CallTimeout bounds calls whose context has no deadline; 0 means 3 s.
	CallTimeout time.Duration
	// MaxCalls is the most calls in flight on one connection, [ErrBusy] beyond; 0 means 4096.
	MaxCalls int
	// Dial makes the connection below TLS; nil means TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Log gets what no call can report: connections that end, requests that are dropped. Nil means nothing is logged.
	Log *zap.Logger
}

func (o Options) orDefaults() Options {
	o.DialTimeout = cmp.Or(o.DialTimeout, DefaultDialTimeout)
	o.CallTimeout = cmp.Or(o.CallTimeout, DefaultCallTimeout)
	o.MaxCalls = cmp.Or(o.MaxCalls, DefaultMaxCalls)
	o.Log = cmp.Or(o.Log, zap.NewNop())

	if o.Dial == nil {
		o.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
	}

	if o.Handle == nil {
		o.Handle = func(context.Context, string, *Command) *Command { return nil }
	}

	if o.Greet == nil {
		o.Greet = func(context.Context, *Conn) error { return nil }
	}

	return o
}
