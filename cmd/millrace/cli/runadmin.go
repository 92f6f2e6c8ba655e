package cli

import (
	"errors"

	"github.com/millrace/millrace/actors/admin"
)

// serveAdmin serves the admin endpoint, before there are jobs, so that a mistake in its address starts none.
func (s *session) serveAdmin() (stop func() error, err error) {
	token, err := s.token("")
	if err != nil {
		return nil, err
	}

	letters, closeLetters, err := s.letters()
	if err != nil {
		return nil, err
	}

	server, err := admin.Serve(admin.Options{
		Address: s.admin, Token: token, Jobs: &s.served, DeadLetters: letters, Redact: s.redact.Redact, Logger: s.log,
	})
	if err != nil {
		return nil, errors.Join(err, closeLetters())
	}

	s.screen.notef("admin endpoint at http://%s", server.Address())

	return func() error { return errors.Join(server.Close(), closeLetters()) }, nil
}

// letters returns the dead letters of the broker. On RocketMQ they are read by members of their own.
func (s *session) letters() (*admin.DeadLetters, func() error, error) {
	if s.broker.embedded != nil {
		return s.broker.embedded.server.DeadLetters(), func() error { return nil }, nil
	}

	c, err := openCluster(plain(s.broker.rocketmq))
	if err != nil {
		return nil, nil, err
	}

	return c.letters(), c.close, nil
}
