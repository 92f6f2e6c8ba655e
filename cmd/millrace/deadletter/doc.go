// Package deadletter reads dead letters at any broker, publishes them again and remembers which of them are settled: replayed or
// dropped. It remembers them as a job remembers finished messages, by the checkpoint of a consumer group on their topic.
package deadletter
