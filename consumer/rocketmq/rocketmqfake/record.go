package rocketmqfake

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"time"
)

// Names of properties that brokers read or set.
const (
	propTags        = "TAGS"
	propDelay       = "DELAY"
	propRetryTopic  = "RETRY_TOPIC"
	propOriginID    = "ORIGIN_MESSAGE_ID"
	propRealTopic   = "REAL_TOPIC"
	propRealQueue   = "REAL_QID"
	propWait        = "WAIT"
	propRetryMark   = "%RETRY%"
	propDeadMark    = "%DLQ%"
	recordMagic     = 0xDAA320A7
	recordFixedSize = 4*5 + 8*2 + 4 + (8+8)*2 + 4 + 8 + 4 + 1 + 2
)

// record is a stored message.
type record struct {
	topic    string
	queue    int
	offset   int64 // in its queue
	physical int64 // in its broker's log
	flag     int32
	sysFlag  int32
	born     int64 // ms
	stored   time.Time
	times    int32 // that it was sent back
	host     [8]byte
	props    map[string]string
	body     []byte
}

// appendTo appends the record as it is on disk and in the answer to a pull.
func (m *record) appendTo(dst []byte) []byte {
	props := encodeProps(m.props)
	be := binary.BigEndian

	dst = be.AppendUint32(dst, uint32(recordFixedSize+len(m.body)+len(m.topic)+len(props)))
	dst = be.AppendUint32(dst, recordMagic)
	dst = be.AppendUint32(dst, crc32.ChecksumIEEE(m.body)&0x7FFFFFFF)
	dst = be.AppendUint32(dst, uint32(m.queue))
	dst = be.AppendUint32(dst, uint32(m.flag))
	dst = be.AppendUint64(dst, uint64(m.offset))
	dst = be.AppendUint64(dst, uint64(m.physical))
	dst = be.AppendUint32(dst, uint32(m.sysFlag))
	dst = be.AppendUint64(dst, uint64(m.born))
	dst = append(dst, 127, 0, 0, 1, 0, 0, 0x30, 0x39)
	dst = be.AppendUint64(dst, uint64(m.stored.UnixMilli()))
	dst = append(dst, m.host[:]...)
	dst = be.AppendUint32(dst, uint32(m.times))
	dst = be.AppendUint64(dst, 0)
	dst = be.AppendUint32(dst, uint32(len(m.body)))
	dst = append(dst, m.body...)
	dst = append(dst, byte(len(m.topic)))
	dst = append(dst, m.topic...)
	dst = be.AppendUint16(dst, uint16(len(props)))

	return append(dst, props...)
}

func (m *record) size() int {
	return recordFixedSize + len(m.body) + len(m.topic) + len(encodeProps(m.props))
}

// id is the message's id by its place.
func (m *record) id() string { return fmt.Sprintf("%X%016X", m.host, m.physical) }

// copyFor returns what is stored when the message goes to another topic.
func (m *record) copyFor(topic string, queue int) *record {
	other := *m
	other.topic, other.queue, other.props = topic, queue, maps.Clone(m.props)

	return &other
}

func decodeProps(text string) map[string]string {
	props := map[string]string{}

	for entry := range strings.SplitSeq(text, "\x02") {
		if key, value, found := strings.Cut(entry, "\x01"); found {
			props[key] = value
		}
	}

	return props
}

func encodeProps(props map[string]string) string {
	var text strings.Builder

	for _, key := range slices.Sorted(maps.Keys(props)) {
		text.WriteString(key + "\x01" + props[key] + "\x02")
	}

	return text.String()
}
