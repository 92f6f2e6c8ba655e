package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

const (
	magicV1 = 0xDAA320A7
	magicV2 = 0xDAA320AB // the length of the topic is two bytes

	// fixedSize is a record of the first version without its body, topic and properties, between hosts of IPv4.
	fixedSize = 4*5 + 8*2 + 4 + (8+8)*2 + 4 + 8 + 4 + 1 + 2
	moreV6    = 12 // that a host takes with IPv6

	maxTopicV1 = 127
	maxTopic   = 1<<15 - 1
)

// Size returns the bytes that Append appends.
func (r *Record) Size() int {
	size := fixedSize + len(r.Body) + len(r.Topic) + len(r.Props)

	if len(r.Topic) > maxTopicV1 {
		size++
	}

	if isV6(r.BornHost) {
		size += moreV6
	}

	if isV6(r.StoreHost) {
		size += moreV6
	}

	return size
}

// Append appends the record as brokers store it; a topic of more than 127 bytes takes the second version. The bits of SysFlag
// that tell the kinds of the hosts are made to fit. It fails with [ErrTooLarge], and then appends nothing.
func (r *Record) Append(dst []byte) ([]byte, error) {
	if len(r.Topic) > maxTopic || len(r.Props) > MaxProps || r.Size() > math.MaxInt32 {
		return dst, fmt.Errorf("%w: a record with a topic of %d, properties of %d and a body of %d bytes",
			ErrTooLarge, len(r.Topic), len(r.Props), len(r.Body))
	}

	sysFlag, magic := r.SysFlag&^(flagBornIPv6|flagStoredIPv6), uint32(magicV1)
	if isV6(r.BornHost) {
		sysFlag |= flagBornIPv6
	}

	if isV6(r.StoreHost) {
		sysFlag |= flagStoredIPv6
	}

	if len(r.Topic) > maxTopicV1 {
		magic = magicV2
	}

	be := binary.BigEndian
	dst = be.AppendUint32(dst, uint32(r.Size()))
	dst = be.AppendUint32(dst, magic)
	dst = be.AppendUint32(dst, checksum(r.Body))
	dst = be.AppendUint32(dst, uint32(r.Queue))
	dst = be.AppendUint32(dst, uint32(r.Flag))
	dst = be.AppendUint64(dst, uint64(r.Offset))
	dst = be.AppendUint64(dst, uint64(r.Physical))
	dst = be.AppendUint32(dst, uint32(sysFlag))
	dst = be.AppendUint64(dst, uint64(r.Born))
	dst = appendHost(dst, r.BornHost)
	dst = be.AppendUint64(dst, uint64(r.Stored))
	dst = appendHost(dst, r.StoreHost)
	dst = be.AppendUint32(dst, uint32(r.Times))
	dst = be.AppendUint64(dst, uint64(r.Prepared))
	dst = be.AppendUint32(dst, uint32(len(r.Body)))
	dst = append(dst, r.Body...)

	if magic == magicV1 {
		dst = append(dst, byte(len(r.Topic)))
	} else {
		dst = be.AppendUint16(dst, uint16(len(r.Topic)))
	}

	dst = append(dst, r.Topic...)
	dst = be.AppendUint16(dst, uint16(len(r.Props)))

	return append(dst, r.Props...), nil
}

// checksum is of the body as it is stored, without its sign.
func checksum(body []byte) uint32 { return crc32.ChecksumIEEE(body) & math.MaxInt32 }
