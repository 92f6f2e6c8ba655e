package producer

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"sync/atomic"
	"time"
)

// ids makes up ids that are nobody else's, of the form of Java's clients: RocketMQ's tools read from it when a message was
// made. It is safe for concurrent use.
type ids struct {
	prefix [10]byte // in Java's the address and the process; here chance, which needs neither
	count  atomic.Uint32
}

func newIDs() *ids {
	i := &ids{}
	_, _ = rand.Read(i.prefix[:]) // never fails

	return i
}

// next returns 32 hex digits: the prefix, the milliseconds since the month began, and a counter.
func (i *ids) next() string {
	now := time.Now()
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, now.Location())

	raw := binary.BigEndian.AppendUint32(i.prefix[:len(i.prefix):len(i.prefix)], uint32(now.Sub(month).Milliseconds()))
	raw = binary.BigEndian.AppendUint16(raw, uint16(i.count.Add(1)))

	return strings.ToUpper(hex.EncodeToString(raw))
}
