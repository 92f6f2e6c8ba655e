package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/cmd/millrace/control"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/embedded"
	"github.com/millrace/millrace/pipeline"
)

// catalog is what a broker has of topics and groups.
type catalog interface {
	// Topics returns the topics that people have to do with, or all.
	Topics(ctx context.Context, all bool) ([]embedded.TopicInfo, error)
	// CreateTopic makes a topic; one that is there with as many queues is left as it is.
	CreateTopic(ctx context.Context, name string, queues int) error
	// Groups returns a group, which is an error when nobody knows it, or those that have offsets or members where none is named.
	Groups(ctx context.Context, name string) ([]embedded.GroupInfo, error)
	// Reset makes a group go on elsewhere, and returns what was moved, also when it fails on the way.
	Reset(ctx context.Context, r control.Reset) ([]control.Moved, error)
}

// traffic is what goes through a broker.
type traffic interface {
	// TopicNames returns the names of all topics.
	TopicNames(ctx context.Context) ([]string, error)
	// Publish stores messages in a topic.
	Publish(ctx context.Context, topic string, messages []control.Message) error
	// Read calls visit with the messages of a topic, one after the other, until the end, an error, or the end of ctx.
	Read(ctx context.Context, r control.Read, visit func(*control.Message) error) error
}

// station is a broker as commands see it: the embedded one, or a cluster of RocketMQ.
type station interface {
	catalog
	traffic

	// DeadLetters returns the dead letters there.
	DeadLetters() deadLetters
}

// local is the embedded broker, in this process or another.
type local struct{ *control.Client }

var _ station = local{}

// DeadLetters implements [station].
func (l local) DeadLetters() deadLetters { return l.Client.DeadLetters() } //nolint:ireturn // each station has its own

// Topics implements [catalog].
func (l local) Topics(ctx context.Context, all bool) ([]embedded.TopicInfo, error) {
	d, err := l.Describe(ctx)

	return slices.DeleteFunc(d.Topics, func(t embedded.TopicInfo) bool { return !all && isOwn(t.Name) }), err
}

// TopicNames implements [traffic].
func (l local) TopicNames(ctx context.Context) ([]string, error) {
	topics, err := l.Topics(ctx, true)

	names := make([]string, len(topics))
	for i := range topics {
		names[i] = topics[i].Name
	}

	return names, err
}

// Groups implements [catalog].
func (l local) Groups(ctx context.Context, name string) ([]embedded.GroupInfo, error) {
	d, err := l.Describe(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what is wrong
	}

	var names []string

	groups := slices.DeleteFunc(d.Groups, func(g embedded.GroupInfo) bool { return len(g.Offsets)+len(g.Members) == 0 })
	for _, g := range groups {
		names = append(names, g.Name)
	}

	if name == "" {
		return groups, nil
	}

	i := slices.Index(names, name)
	if i < 0 {
		return nil, noGroup(name, names)
	}

	return groups[i : i+1], nil
}

// noGroup says that there is no such group, and which may have been meant.
func noGroup(name string, known []string) error {
	return fmt.Errorf("there is no group %q; %s", name, pipeline.Suggest(name, known))
}

// isOwn reports whether a topic is one in which groups keep their own things, which people have nothing to do with.
func isOwn(topic string) bool {
	return strings.HasPrefix(topic, consumer.RetryTopic("")) || strings.HasPrefix(topic, "millrace_checkpoints_")
}

// whetherTopic returns why something failed: that there is no such topic, with a cure, or else the error itself.
func whetherTopic(ctx context.Context, t traffic, topic string, err error, cure string) error {
	names, failed := t.TopicNames(ctx)
	if failed != nil || slices.Contains(names, topic) {
		return err
	}

	return fmt.Errorf("there is no topic %q; %s%s", topic, pipeline.Suggest(topic, slices.DeleteFunc(names, isOwn)), cure)
}

// withStation calls use with the broker that is named.
func (a *app) withStation(ctx context.Context, named string, use func(context.Context, station) error) error {
	dir, settings, err := a.brokerOf(named)
	if err != nil {
		return err
	}

	if settings != nil {
		return a.withCluster(ctx, settings, use)
	}

	return a.withBroker(ctx, dir, func(ctx context.Context, c *control.Client) error { return use(ctx, local{c}) })
}

// withNewStation is withStation, but makes an embedded broker where there is none.
func (a *app) withNewStation(ctx context.Context, named string, use func(context.Context, station) error) error {
	dir, settings, err := a.brokerOf(named)
	if err != nil {
		return err
	}

	if settings == nil && !exists(dir) {
		b, err := embedded.Open(embedded.Options{Dir: dir}) //nolint:contextcheck // opening and closing take none
		if err != nil {
			return err //nolint:wrapcheck // it names the directory and the way out
		}

		if err := b.Close(); err != nil {
			return err //nolint:wrapcheck // as above
		}
	}

	return a.withStation(ctx, named, use)
}
