package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// Server is an endpoint that is served.
type Server struct {
	http     *http.Server
	listener net.Listener
	served   chan error
}

const (
	headerTime = 5 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 16 << 10
	closeTime  = 5 * time.Second
)

// Serve listens, and serves until Close. It fails when the address cannot be listened on, and when it could be reached by
// others without a token.
func Serve(o Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}

	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}

	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}

	return Start(listener, &http.Server{
		Handler: NewHandler(o), ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, WriteTimeout: requestTime + headerTime,
		IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, ErrorLog: zap.NewStdLog(o.Logger),
	}), nil
}

// Start serves on a listener, which becomes the server's, until Close.
func Start(listener net.Listener, server *http.Server) *Server {
	s := &Server{listener: listener, served: make(chan error, 1), http: server}

	go func() { s.served <- s.http.Serve(listener) }()

	return s
}

// Address returns where the server listens, as host:port.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close stops serving; requests under way may end, for up to 5 s. Call it once.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()

	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}

	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}

	if err != nil {
		return fmt.Errorf("admin: %w", err)
	}

	return nil
}
