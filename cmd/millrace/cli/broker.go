package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/cmd/millrace/control"
	"github.com/millrace/millrace/consumer/embedded"
	"github.com/millrace/millrace/pipeline/jobfile"
)

// options returns how a broker of a job file is opened.
func options(e *jobfile.Embedded, log *zap.Logger) embedded.Options {
	o := embedded.Options{
		Dir: e.Dir, NoSync: e.NoSync, Logger: log, Retention: embedded.Retention{Age: e.KeepFor, Bytes: e.KeepBytes},
	}

	if e.DropUnread {
		o.Retention.Unread = embedded.DropUnread
	}

	return o
}

// opened is a broker that this process has open, and serves to other ones.
type opened struct {
	*embedded.Broker

	server *control.Server
}

// open opens a broker and serves it.
func open(o embedded.Options) (*opened, error) {
	broker, err := embedded.Open(o)
	if err != nil {
		return nil, err //nolint:wrapcheck // its errors name the directory and the way out
	}

	server, err := control.Serve(o.Dir, broker)
	if err != nil {
		return nil, errors.Join(err, broker.Close())
	}

	return &opened{Broker: broker, server: server}, nil
}

// Close stops serving and closes the broker.
func (o *opened) Close() error {
	return errors.Join(o.server.Close(), o.Broker.Close())
}

// brokerFlag is the flag that names the broker of a command.
const brokerFlag = "broker"

const (
	brokerHelp = "the broker's `directory`, or a job file that names it"
	// stationHelp is of the commands that also work on RocketMQ.
	stationHelp = "the broker's `directory`, rocketmq://HOST:PORT[,HOST:PORT], or a job file that names either"
)

// defaultBroker is the directory of the broker when none is named: the one in the job file that init writes.
const defaultBroker = "data"

// brokerOf returns what the broker flag means: a directory, or else a cluster of RocketMQ.
func (a *app) brokerOf(named string) (dir string, r *jobfile.RocketMQ, err error) {
	if strings.HasPrefix(named, clusterScheme) {
		r, err := parseCluster(named, a.Variables)

		return "", r, err
	}

	if ext := filepath.Ext(named); ext != ".yaml" && ext != ".yml" {
		return named, nil, nil
	}

	files, err := a.load([]string{named})
	if err != nil {
		return "", nil, err
	}

	if b := files[0].Broker; b.Embedded != nil {
		return b.Embedded.Dir, nil, nil
	}

	return "", files[0].Broker.RocketMQ, nil
}

// directory returns the directory that the broker flag means.
func (a *app) directory(named string) (string, error) {
	dir, r, err := a.brokerOf(named)
	if err == nil && r != nil {
		err = fmt.Errorf("%s is RocketMQ, and jobs on it are not asked by way of the broker; "+
			"start them with `millrace run --admin ADDRESS` and ask there with --admin ADDRESS", named)
	}

	return dir, err
}

// exists reports whether there is a broker's directory.
func exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "FORMAT"))

	return err == nil
}

// withBroker calls use with a client of the broker: of the process that has it open, or else of this one, which opens it
// for as long as it takes.
func (a *app) withBroker(ctx context.Context, named string, use func(context.Context, *control.Client) error) (err error) {
	dir, err := a.directory(named)
	if err != nil {
		return err
	}

	client, broker, err := connect(ctx, dir)
	if err != nil {
		return err
	}

	if broker != nil {
		defer func() { err = errors.Join(err, broker.Close()) }() //nolint:contextcheck // opening and closing take none
	}

	defer client.Close()

	ctx, stop := a.untilInterrupted(ctx)
	defer stop()

	return use(ctx, client)
}

// connect returns a client of the broker in a directory, and the broker where it was opened for that. Another command may
// be about to open or to close it, so a directory that is in use and not served is asked for some time.
func connect(ctx context.Context, dir string) (*control.Client, *opened, error) {
	const (
		tries = 50
		pause = 100 * time.Millisecond
	)

	for try := 1; ; try++ {
		client, err := control.Connect(ctx, dir)
		if !errors.Is(err, control.ErrNotServed) {
			return client, nil, err //nolint:wrapcheck // it says where it is from
		}

		if !exists(dir) {
			return nil, nil, fmt.Errorf("there is no broker in %s; run a job on it, make a topic with "+
				"`millrace topics create TOPIC`, or name another one with --broker", dir)
		}

		broker, err := open(embedded.Options{Dir: dir}) //nolint:contextcheck // opening takes none
		if err == nil {
			client, err = control.Connect(ctx, dir)
			if err != nil {
				return nil, nil, errors.Join(err, broker.Close()) //nolint:contextcheck // as opening
			}

			return client, broker, nil
		}

		if errors.Is(err, embedded.ErrInUse) && try == tries {
			return nil, nil, inUse(dir, err)
		}

		if !errors.Is(err, embedded.ErrInUse) {
			return nil, nil, err //nolint:wrapcheck // it names the directory and the way out
		}

		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// inUse says who has a directory open and does not serve it.
func inUse(dir string, err error) error {
	who := holder(dir)
	if who == "" {
		who = "a program"
	}

	return fmt.Errorf("%s has it open that takes no commands; stop it, or name another broker with --broker: %w", who, err)
}

// untilInterrupted returns a context that ends with the first interrupt.
func (a *app) untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)

	go func() {
		select {
		case <-a.Interrupts:
			cancel()
		case <-ctx.Done():
		}
	}()

	return ctx, cancel
}

// sinkTopics returns the topics that a job's sinks publish to, as far as the file says them.
func sinkTopics(job *jobfile.Job) []string {
	var topics []string

	for _, sink := range job.Sinks() {
		if sink.Plugin != "topic" {
			continue
		}

		name, _ := sink.Options.(string)
		if options, ok := sink.Options.(map[string]any); ok {
			name, _ = options["name"].(string)
		}

		if name != "" && !strings.ContainsAny(name, "{}$") {
			topics = append(topics, name)
		}
	}

	return topics
}

// newTopicQueues is how many queues a topic gets that a job needs and nobody has made.
const newTopicQueues = 4

// makeTopics makes the topics of a file that are missing, and tells which. Where the file lists topics it means these only.
func makeTopics(ctx context.Context, broker *embedded.Broker, file *jobfile.File, note func(string, ...any)) error {
	wanted := file.Broker.Embedded.Topics
	if wanted == nil {
		wanted = make(map[string]int)

		for _, job := range file.Jobs {
			for _, topic := range slices.Concat(job.Topics(), sinkTopics(job)) {
				wanted[topic] = newTopicQueues
			}
		}
	}

	there := broker.Topics()

	for topic, queues := range wanted {
		exists := slices.Contains(there, topic)
		if exists && file.Broker.Embedded.Topics == nil {
			continue
		}

		if err := broker.CreateTopic(ctx, topic, queues); err != nil {
			return fmt.Errorf("%s: %w", file.Name, err)
		}

		if !exists {
			note("made topic %s with %s", topic, plural(queues, "queue"))
		}
	}

	return nil
}
