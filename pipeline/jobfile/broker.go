package jobfile

import (
	"fmt"
	"reflect"
	"time"
)

// Broker says what the jobs of a file run on: one of its fields is set.
type Broker struct {
	Embedded *Embedded
	RocketMQ *RocketMQ
}

// Embedded is the broker that keeps its messages in a directory.
type Embedded struct {
	// Dir is the directory, as it is written: relative to where the command runs.
	Dir string
	// Topics are the topics to make when they are missing, by name, and how many queues they get.
	Topics map[string]int
	// NoSync does not wait for the disk; see the broker's own options.
	NoSync bool
	// KeepFor and KeepBytes bound what each topic keeps; 0 means everything. DropUnread lets them delete what nobody has
	// read yet.
	KeepFor    time.Duration
	KeepBytes  int64
	DropUnread bool
}

// maxQueues is the most queues of a topic.
const maxQueues = 1 << 16

// broker reads the broker of the documents: the first one names it, the others may repeat it.
func (d *decoder) broker(f *File, docs []*node) {
	for i, doc := range docs {
		if doc.kind != table {
			continue
		}

		n := doc.get("broker")

		switch {
		case n == nil && i == 0:
			d.mistakef(doc.at, "no broker; add broker: { embedded: ./data }, or what the job is to run on")
		case n == nil:
		case i == 0:
			f.Broker = d.brokerOf(n)
		default:
			if b := d.brokerOf(n); !reflect.DeepEqual(b, f.Broker) {
				d.mistakef(n.at, "this is another broker than the first job's, and the jobs of a file share one; "+
					"remove it, or move the job to a file of its own")
			}
		}
	}
}

func (d *decoder) brokerOf(n *node) Broker {
	f := d.fields(n, "broker", "embedded", typeRocketMQ)
	e, r := f.get("embedded"), f.get(typeRocketMQ)

	switch {
	case e != nil && r != nil:
		d.mistakef(n.at, "broker is both embedded and rocketmq; remove one")
	case e == nil && r == nil && n.kind == table && len(n.entries) == 0:
		d.mistakef(n.at, "broker is empty; add embedded: ./data")
	case r != nil:
		return Broker{RocketMQ: d.rocketMQ(r)}
	case e == nil:
	case e.kind == single:
		return Broker{Embedded: &Embedded{Dir: d.textOf(e, "embedded")}}
	default:
		return Broker{Embedded: d.embedded(e)}
	}

	return Broker{}
}

func (d *decoder) embedded(n *node) *Embedded {
	f := d.fields(n, "embedded", "dir", "topics", "sync", "keep")

	e := &Embedded{Dir: f.text("dir")}
	if f.missing("dir") {
		d.mistakef(n.at, "embedded has no dir; name the directory to keep the messages in")
	}

	if n.get("sync") != nil {
		e.NoSync = !f.truth("sync")
	}

	if keep := f.get("keep"); keep != nil {
		k := d.fields(keep, "keep", "age", "bytes", "unread")
		e.KeepFor, e.KeepBytes = k.duration("age"), k.size("bytes")
		e.DropUnread = k.oneOf("unread", "keep", "drop") == "drop"
	}

	topics := f.get("topics")
	if topics == nil {
		return e
	}

	if topics.kind != table {
		d.mistakef(topics.at, "topics is %s; it should be a table of topics and how many queues they have", topics.is())

		return e
	}

	e.Topics = make(map[string]int)

	for _, entry := range topics.entries {
		what := fmt.Sprintf("the number of queues of %q", entry.key)
		e.Topics[entry.key] = d.integerOf(entry.value, what, 1, maxQueues)
	}

	return e
}
