// Package deadletter reads dead letters at any broker, publishes them again and remembers which of them are settled: replayed or
// dropped. It remembers them as a job remembers finished messages, by the checkpoint of a consumer group on their topic.
//
// A [Desk] is at a broker. A [Choice] picks letters, a [Work] settles what is picked at a rate, and [Replace] replays one that
// was changed. The dlq commands and the admin endpoint are made of these.
package deadletter
