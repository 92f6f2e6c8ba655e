package embedded

import (
	"encoding/binary"

	"github.com/millrace/millrace/pipeline"
)

// The first byte of a key says what it holds. Numbers in keys are big-endian, so that they sort.
const (
	kindCheckpoint = 'c' // c group topic queue              -> checkpoint
	kindDelayed    = 'd' // d due serial topic queue         -> record, on its way to that queue
	kindGroup      = 'g' // g name                           -> group
	kindOpenings   = 'n' // n                          -> how often the directory was opened
	kindQueue      = 'q' // q topic queue                    -> queue state
	kindRecord     = 'r' // r topic queue offset             -> record
	kindTopic      = 't' // t name                           -> topic
	kindReturned   = 'x' // x group topic queue offset       -> nothing: the offset was sent back or dead-lettered
)

const (
	queueIDLen    = 8                          // topic, queue
	recordKeyLen  = 1 + queueIDLen + 8         // kind, topic, queue, offset
	delayedKeyLen = 1 + 8 + 8 + queueIDLen     // kind, due, serial, topic, queue
	returnKeyLen  = 1 + 4 + queueIDLen + 8     // kind, group, topic, queue, offset
	maxOffset     = pipeline.Offset(1)<<62 - 1 // far beyond what a queue can reach
)

// queueID names a queue in keys.
type queueID struct {
	topic, queue uint32
}

func (id queueID) appendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, id.topic)

	return binary.BigEndian.AppendUint32(b, id.queue)
}

func parseQueueID(b []byte) queueID {
	return queueID{topic: binary.BigEndian.Uint32(b), queue: binary.BigEndian.Uint32(b[4:])}
}

func (id queueID) stateKey() []byte { return id.appendTo([]byte{kindQueue}) }

func (id queueID) recordKey(b []byte, o pipeline.Offset) []byte {
	b = id.appendTo(append(b, kindRecord))

	return binary.BigEndian.AppendUint64(b, uint64(o))
}

func checkpointKey(group uint32, id queueID) []byte {
	return id.appendTo(binary.BigEndian.AppendUint32([]byte{kindCheckpoint}, group))
}

func returnedKey(group uint32, id queueID, o pipeline.Offset) []byte {
	b := id.appendTo(binary.BigEndian.AppendUint32([]byte{kindReturned}, group))

	return binary.BigEndian.AppendUint64(b, uint64(o))
}

func delayedKey(due int64, serial uint64, id queueID) []byte {
	b := binary.BigEndian.AppendUint64([]byte{kindDelayed}, uint64(due))

	return id.appendTo(binary.BigEndian.AppendUint64(b, serial))
}

// keyOffset returns the offset that ends the key of a record or of a returned mark.
func keyOffset(key []byte) pipeline.Offset {
	return pipeline.Offset(binary.BigEndian.Uint64(key[len(key)-8:]))
}

func nameKey(kind byte, name string) []byte { return append([]byte{kind}, name...) }

// kindEnd is the first key behind all keys of a kind.
func kindEnd(kind byte) []byte { return []byte{kind + 1} }
