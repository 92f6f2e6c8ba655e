package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/millrace/millrace/cmd/millrace/control"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/deadletter"
	"github.com/millrace/millrace/consumer/embedded"
	"github.com/millrace/millrace/consumer/rocketmq/admin"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/jobfile"
)

// unknownBytes is how many bytes a queue has when nobody says it.
const unknownBytes = -1

// cluster is a cluster of RocketMQ as commands see it.
type cluster struct {
	ground *ground
	admin  *admin.Client
	desk   *deadletter.Desk
}

var _ station = (*cluster)(nil)

// withCluster calls use with a cluster.
func (a *app) withCluster(ctx context.Context, r *jobfile.RocketMQ, use func(context.Context, station) error) (err error) {
	r = plain(r)

	// Readers keep offsets in files, which nobody is to find again.
	if r.OffsetDir, err = os.MkdirTemp("", "millrace-"); err != nil {
		return fmt.Errorf("a place for the offsets of readers: %w", err)
	}

	defer func() { err = errors.Join(err, os.RemoveAll(r.OffsetDir)) }()

	c, err := openCluster(r) //nolint:contextcheck // opening takes none
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, c.close()) }()

	ctx, stop := a.untilInterrupted(ctx)
	defer stop()

	return use(ctx, c)
}

// plain returns a cluster without what a file says of its consumers: members of commands filter, lock and remember nothing but
// what a command says.
func plain(r *jobfile.RocketMQ) *jobfile.RocketMQ {
	return &jobfile.RocketMQ{
		NameServers: r.NameServers, Namespace: r.Namespace, AccessKey: r.AccessKey, SecretKey: r.SecretKey,
		SecurityToken: r.SecurityToken, TLS: r.TLS, CA: r.CA, Certificate: r.Certificate, Key: r.Key, ServerName: r.ServerName,
		CallTimeout: r.CallTimeout, DialTimeout: r.DialTimeout,
	}
}

func openCluster(r *jobfile.RocketMQ) (*cluster, error) {
	on, err := openRocketMQ(r, zap.NewNop())
	if err != nil {
		return nil, err
	}

	settings, err := tlsOf(r)
	if err != nil {
		return nil, errors.Join(err, on.close())
	}

	client, err := admin.Open(admin.Options{
		NameServers: r.NameServers, Namespace: routes.Namespace(r.Namespace), Remoting: wireOf(r, settings, zap.NewNop()),
	})
	if err != nil {
		return nil, errors.Join(err, on.close())
	}

	c := &cluster{ground: on, admin: client}
	c.desk = deadletter.NewSharedDesk(on.Broker, on.Publisher, func(ctx context.Context, topic string) (int, error) {
		queues, err := client.Queues(ctx, topic)

		return len(queues), err
	})

	return c, nil
}

func (c *cluster) close() error {
	c.admin.Close()

	return c.ground.close()
}

// Topics implements [catalog].
func (c *cluster) Topics(ctx context.Context, all bool) ([]embedded.TopicInfo, error) {
	names, err := c.TopicNames(ctx)
	if err != nil {
		return nil, err
	}

	var topics []embedded.TopicInfo

	for _, name := range names {
		if !all && isOwn(name) {
			continue
		}

		queues, err := c.admin.Queues(ctx, name)
		if _, gone := errors.AsType[*consumer.UnknownTopicError](err); gone {
			continue
		}

		if err != nil {
			return nil, err //nolint:wrapcheck // it says what is wrong
		}

		t := embedded.TopicInfo{Name: name}
		for _, q := range queues {
			t.Queues = append(t.Queues, embedded.QueueInfo{Queue: q.Queue, First: q.First, End: q.End, Bytes: unknownBytes})
		}

		topics = append(topics, t)
	}

	return topics, nil
}

// TopicNames implements [traffic].
func (c *cluster) TopicNames(ctx context.Context) ([]string, error) {
	return c.admin.Topics(ctx) //nolint:wrapcheck // it says what is wrong
}

// CreateTopic implements [catalog]. Each broker of the cluster gets as many queues.
func (c *cluster) CreateTopic(ctx context.Context, name string, queues int) error {
	return c.admin.CreateTopic(ctx, name, queues) //nolint:wrapcheck // it says what is wrong
}

// Groups implements [catalog].
func (c *cluster) Groups(ctx context.Context, name string) ([]embedded.GroupInfo, error) {
	names := []string{name}

	if name == "" {
		var err error
		if names, err = c.admin.Groups(ctx); err != nil {
			return nil, err //nolint:wrapcheck // it says what is wrong
		}
	}

	var groups []embedded.GroupInfo

	for _, one := range names {
		g, err := c.group(ctx, one)
		if err != nil {
			return nil, err
		}

		if len(g.Offsets)+len(g.Members) > 0 {
			groups = append(groups, g)
		}
	}

	if len(groups) == 0 && name != "" {
		return nil, c.idle(ctx, name)
	}

	return groups, nil
}

func (c *cluster) group(ctx context.Context, name string) (embedded.GroupInfo, error) {
	g, err := c.admin.Group(ctx, name)
	if err != nil {
		return embedded.GroupInfo{}, err //nolint:wrapcheck // it says what is wrong
	}

	info := embedded.GroupInfo{Name: name, Members: g.Members}
	for _, p := range g.Offsets {
		info.Offsets = append(info.Offsets, embedded.GroupOffset{Queue: p.Queue, Next: p.Next, Lag: int64(p.End - p.Next)})
	}

	return info, nil
}

// idle says of a group without offsets and members what it is.
func (c *cluster) idle(ctx context.Context, name string) error {
	known, err := c.admin.Groups(ctx)
	if err != nil {
		return err //nolint:wrapcheck // it says what is wrong
	}

	if slices.Contains(known, name) {
		return fmt.Errorf("group %q has stored no offset and has no members; jobs of it begin as their source.start says", name)
	}

	return noGroup(name, known)
}

// Publish implements [traffic].
func (c *cluster) Publish(ctx context.Context, topic string, messages []control.Message) error {
	all := make([]*pipeline.Message, len(messages))
	for i := range messages {
		all[i] = messages[i].Pipeline()
	}

	return c.ground.Publish(ctx, topic, all) //nolint:wrapcheck // it says what is wrong
}

// reader reads beside the groups, under a group that is on every broker.
func (c *cluster) reader() control.Reader {
	return control.Reader{Broker: c.ground.Broker, Group: admin.ToolsGroup, Instance: "millrace-" + rand.Text()}
}

// Read implements [traffic].
func (c *cluster) Read(ctx context.Context, r control.Read, visit func(*control.Message) error) error {
	var mu sync.Mutex // visit has one caller at a time

	return c.reader().Read(ctx, r, func(messages []*pipeline.Message) error { //nolint:wrapcheck // it says what is wrong
		mu.Lock()
		defer mu.Unlock()

		for _, m := range messages {
			if err := visit(control.MessageOf(m)); err != nil {
				return err
			}
		}

		return nil
	})
}
