package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/millrace/millrace/cmd/millrace/control"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq"
	sender "github.com/millrace/millrace/consumer/rocketmq/producer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline/jobfile"
)

// ground is what the jobs of a session run on.
type ground struct {
	consumer.Broker
	consumer.Publisher

	// embedded is the embedded broker, nil for another one.
	embedded *opened
	// rocketmq says which cluster it is, nil for another one.
	rocketmq *jobfile.RocketMQ
	close    func() error
}

// openGround opens what a job file names.
func openGround(b jobfile.Broker, log *zap.Logger) (*ground, error) {
	if b.RocketMQ != nil {
		return openRocketMQ(b.RocketMQ, log)
	}

	broker, err := open(options(b.Embedded, log))
	if err != nil {
		return nil, err
	}

	return &ground{Broker: broker, Publisher: broker, embedded: broker, close: broker.Close}, nil
}

// serve lets other commands ask a job, where they can.
func (g *ground) serve(job control.Job) {
	if g.embedded != nil {
		g.embedded.server.Run(job)
	}
}

func openRocketMQ(r *jobfile.RocketMQ, log *zap.Logger) (*ground, error) {
	settings, err := tlsOf(r)
	if err != nil {
		return nil, err
	}

	wire := wireOf(r, settings, log)

	broker, err := rocketmq.Open(rocketmq.Options{
		NameServers: r.NameServers, Namespace: r.Namespace, Filters: filtersOf(r), Credentials: wire.Credentials, TLS: settings,
		JavaFirstBoot: r.JavaFirstBoot, OffsetsOnly: r.OffsetsOnly, Orderly: r.Orderly, Circle: r.Circle, OffsetDir: r.OffsetDir,
		DelayLevels: r.DelayLevels, HoldPull: r.HoldPull, CallTimeout: r.CallTimeout, DialTimeout: r.DialTimeout,
		HeartbeatEvery: r.HeartbeatEvery, RoutesEvery: r.RoutesEvery, RebalanceEvery: r.RebalanceEvery, Log: log,
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // it says where it is from
	}

	publisher, err := sender.New(sender.Options{
		NameServers: r.NameServers, Namespace: routes.Namespace(r.Namespace), Remoting: wire, RoutesEvery: r.RoutesEvery,
	})
	if err != nil {
		return nil, errors.Join(err, broker.Close())
	}

	return &ground{Broker: broker, Publisher: publisher, rocketmq: r, close: func() error {
		return errors.Join(publisher.Close(), broker.Close())
	}}, nil
}

// wireOf returns how a cluster is spoken to.
func wireOf(r *jobfile.RocketMQ, settings *tls.Config, log *zap.Logger) remoting.Options {
	return remoting.Options{
		TLS: settings, DialTimeout: r.DialTimeout, CallTimeout: r.CallTimeout, Log: log, Credentials: remoting.Credentials{
			AccessKey: r.AccessKey, SecretKey: r.SecretKey, SecurityToken: r.SecurityToken,
		},
	}
}

func filtersOf(r *jobfile.RocketMQ) map[string]rocketmq.Filter {
	filters := make(map[string]rocketmq.Filter)

	for topic, tags := range r.Tags {
		filters[topic] = rocketmq.Filter{Tags: tags}
	}

	for topic, sql := range r.SQL {
		filters[topic] = rocketmq.Filter{Tags: filters[topic].Tags, SQL: sql}
	}

	return filters
}

// tlsOf returns how TLS is spoken, nil for not at all.
func tlsOf(r *jobfile.RocketMQ) (*tls.Config, error) {
	if !r.TLS {
		return nil, nil //nolint:nilnil // none is what is wished
	}

	settings := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: r.ServerName}

	if r.Certificate != "" {
		own, err := tls.LoadX509KeyPair(r.Certificate, r.Key)
		if err != nil {
			return nil, fmt.Errorf("the certificate for RocketMQ's servers, %s with %s: %w", r.Certificate, r.Key, err)
		}

		settings.Certificates = []tls.Certificate{own}
	}

	if r.CA == "" {
		return settings, nil
	}

	pem, err := os.ReadFile(filepath.Clean(r.CA))
	if err != nil {
		return nil, fmt.Errorf("the authority of RocketMQ's servers: %w", err)
	}

	settings.RootCAs = x509.NewCertPool()
	if !settings.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("the authority of RocketMQ's servers: %s has no certificate in PEM", r.CA)
	}

	return settings, nil
}
