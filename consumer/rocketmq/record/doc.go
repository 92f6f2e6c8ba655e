// Package record reads and writes messages as RocketMQ's brokers store them, which is also how they answer pulls, and as
// producers send them. A [Decoder] reads what a pull brings; [Record.Append] and [AppendEntry] write.
//
// Everything is bounded and nothing is trusted: bytes that are no record are a [*DamagedError] with the offset where that can
// be told, and a body that swells beyond its limit is [ErrTooLarge].
package record
