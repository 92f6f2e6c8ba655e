package rocketmqfake

import (
	"maps"
	"net/netip"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/record"
)

const (
	retryMark = "%RETRY%"
	deadMark  = "%DLQ%"
)

// message is a stored message.
type message struct {
	topic    string
	queue    int
	offset   int64 // in its queue
	physical int64 // in its broker's log
	flag     int32
	sysFlag  int32
	born     int64 // ms
	stored   time.Time
	times    int32 // that it was sent back
	host     netip.AddrPort
	props    map[string]string
	body     []byte
}

// record returns the message as it is on disk and in the answer to a pull.
func (m *message) record() *record.Record {
	return &record.Record{
		Topic: m.topic, Queue: m.queue, Offset: m.offset, Physical: m.physical, Flag: m.flag, SysFlag: m.sysFlag,
		Born: m.born, Stored: m.stored.UnixMilli(), BornHost: netip.AddrPortFrom(loopback(), 12345), StoreHost: m.host,
		Times: int(m.times), Body: m.body, Props: record.Join(m.props),
	}
}

// appendTo appends the record. What grew too large for one with what a broker adds to it is left out; real brokers fail there.
func (m *message) appendTo(dst []byte) []byte {
	dst, _ = m.record().Append(dst)

	return dst
}

func (m *message) size() int { return m.record().Size() }

// id is the message's id by its place.
func (m *message) id() string { return m.record().OffsetID() }

// copyFor returns what is stored when the message goes to another topic.
func (m *message) copyFor(topic string, queue int) *message {
	other := *m
	other.topic, other.queue, other.props = topic, queue, maps.Clone(m.props)

	return &other
}

func loopback() netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, 1}) }
