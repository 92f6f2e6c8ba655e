package rocketmq

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// stored is a record as it lies at the broker.
type stored struct {
	queue            int
	offset, physical int64
	flag, sysFlag    int32
	born, storedAt   int64
	times            int
	topic            string
	body             []byte
	props            map[string]string
	host             string // id prefix
}

func decodeRecords(raw []byte) ([]stored, error) {
	var all []stored
	be := binary.BigEndian
	for len(raw) > 0 {
		if len(raw) < 91 || int(be.Uint32(raw)) > len(raw) {
			return all, errors.New("short")
		}
		r := raw[:be.Uint32(raw)]
		raw = raw[len(r):]
		s := stored{
			queue: int(be.Uint32(r[12:])), flag: int32(be.Uint32(r[16:])), offset: int64(be.Uint64(r[20:])), physical: int64(be.Uint64(r[28:])),
			sysFlag: int32(be.Uint32(r[36:])), born: int64(be.Uint64(r[40:])), storedAt: int64(be.Uint64(r[56:])), times: int(be.Uint32(r[72:])), props: map[string]string{},
			host: fmt.Sprintf("%X", r[64:72]),
		}
		rest := r[84:]
		size := be.Uint32(rest)
		s.body, rest = rest[4:4+size], rest[4+size:]
		topic := int(rest[0])
		s.topic, rest = string(rest[1:1+topic]), rest[1+topic:]
		for entry := range strings.SplitSeq(string(rest[2:]), "\x02") {
			if key, value, found := strings.Cut(entry, "\x01"); found {
				s.props[key] = value
			}
		}
		all = append(all, s)
	}
	return all, nil
}
