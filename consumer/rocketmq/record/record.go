package record

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strings"
)

// The bits of Record.SysFlag.
const (
	flagCompressed = 1 << 0
	flagBornIPv6   = 1 << 4
	flagStoredIPv6 = 1 << 5
	flagUnwrap     = 1 << 6
	flagBatch      = 1 << 7

	kindShift = 8
	kindMask  = 7 << kindShift

	flagsOfBatch = flagUnwrap | flagBatch
)

// Record is one message as a broker stores it.
type Record struct {
	// Topic is the topic that it lies in, which for a redelivery is the group's own.
	Topic string
	// Queue and Offset are its place in the topic.
	Queue  int
	Offset int64
	// Physical is its place in the broker's log, which is what a broker wants to know of a message that is sent back. The
	// messages of an inner batch share one.
	Physical int64
	// Flag is the producer's own, and means nothing to brokers.
	Flag int32
	// SysFlag holds the broker's bits. What a Decoder has undone, compression and inner batches, is cleared in it.
	SysFlag int32
	// Born and Stored are when it was made by the producer's clock and stored by the broker's, in ms since 1970.
	Born, Stored int64
	// BornHost and StoreHost are the addresses of the producer and of the broker.
	BornHost, StoreHost netip.AddrPort
	// Times counts how often it was sent back.
	Times int
	// Prepared is the place of the other half of a transaction.
	Prepared int64
	// Body is the payload.
	Body []byte
	// Props are the properties.
	Props Properties
}

// ID returns the message's id: the one that its producer gave it, which redeliveries keep, or else OffsetID.
func (r *Record) ID() string {
	if id, found := r.Props.Get(PropUniqueKey); found && id != "" {
		return id
	}

	return r.OffsetID()
}

// OffsetID returns the id that says where the message lies: its broker and its place there. Each redelivery has another.
func (r *Record) OffsetID() string {
	raw := appendHost(make([]byte, 0, 28), r.StoreHost)
	raw = binary.BigEndian.AppendUint64(raw, uint64(r.Physical))

	return strings.ToUpper(hex.EncodeToString(raw))
}

// isV6 reports whether an address takes sixteen bytes. None at all is written as four zeros.
func isV6(host netip.AddrPort) bool { return host.Addr().Is6() }

func appendHost(dst []byte, host netip.AddrPort) []byte {
	switch addr := host.Addr(); {
	case addr.Is6():
		raw := addr.As16()
		dst = append(dst, raw[:]...)
	case addr.Is4():
		raw := addr.As4()
		dst = append(dst, raw[:]...)
	default:
		dst = append(dst, 0, 0, 0, 0)
	}

	return binary.BigEndian.AppendUint32(dst, uint32(host.Port()))
}
