package rocketmq

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// offsetsDocument is the file of a broadcasting member. Sum is the CRC-32C of the bytes of Queues: a digit that has become
// another one is still a number, and would have messages passed over that nobody has seen.
type offsetsDocument struct {
	Sum    string          `json:"crc32c"`
	Queues json.RawMessage `json:"queues"`
}

// fileEntry is one queue in the file.
type fileEntry struct {
	Topic  string               `json:"topic"`
	Broker string               `json:"broker"`
	Queue  int                  `json:"queue"`
	Next   pipeline.Offset      `json:"next"`
	Done   [][2]pipeline.Offset `json:"done,omitempty"`
}

func (e fileEntry) queue() pipeline.Queue {
	return pipeline.Queue{Topic: e.Topic, Broker: e.Broker, ID: e.Queue}
}

func sumOf(body []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

// encodeOwn returns the file for checkpoints.
func encodeOwn(queues map[pipeline.Queue]consumer.Checkpoint) []byte {
	entries := make([]fileEntry, 0, len(queues))

	for q, c := range queues {
		e := fileEntry{Topic: q.Topic, Broker: q.Broker, Queue: q.ID, Next: c.Next}
		for _, run := range c.Done {
			e.Done = append(e.Done, [2]pipeline.Offset{run.From, run.To})
		}

		entries = append(entries, e)
	}

	slices.SortFunc(entries, func(a, b fileEntry) int { return consumer.CompareQueues(a.queue(), b.queue()) })

	body := encode(entries)

	return encode(offsetsDocument{Sum: sumOf(body), Queues: body})
}

// readOwn reads our file. Those of versions before the sum are the array alone.
func readOwn(body []byte) (map[pipeline.Queue]consumer.Checkpoint, error) {
	if len(body) == 0 {
		return nil, errors.New("it is empty")
	}

	if body[0] != '[' {
		var document offsetsDocument

		if err := json.Unmarshal(body, &document); err != nil {
			return nil, at(err)
		}

		if got := sumOf(document.Queues); got != document.Sum {
			return nil, fmt.Errorf("its sum is %s where %q is written", got, document.Sum)
		}

		body = document.Queues
	}

	var entries []fileEntry

	if err := json.Unmarshal(body, &entries); err != nil {
		return nil, at(err)
	}

	queues := make(map[pipeline.Queue]consumer.Checkpoint, len(entries))

	for _, e := range entries {
		c := consumer.Checkpoint{Next: e.Next}
		for _, run := range e.Done {
			c.Done = append(c.Done, consumer.Run{From: run[0], To: run[1]})
		}

		if err := c.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", e.queue(), err)
		}

		queues[e.queue()] = c
	}

	return queues, nil
}

// at adds where a text stops to be JSON.
func at(err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("at byte %d: %w", syntax.Offset, err)
	}

	return err
}

// errBegun says that RocketMQ's own client has begun to write its file.
var errBegun = errors.New("a file without anything in it")

// readJava reads what RocketMQ's own client writes, whose keys are objects.
func readJava(body []byte, name func(string) string) (map[pipeline.Queue]consumer.Checkpoint, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, errBegun
	}

	offsets, err := readOffsetTable(body)
	if err != nil {
		return nil, err
	}

	queues := make(map[pipeline.Queue]consumer.Checkpoint, len(offsets))

	for q, o := range offsets {
		if q.Topic = name(q.Topic); o >= 0 {
			queues[q] = consumer.Checkpoint{Next: o}
		}
	}

	return queues, nil
}
