// Package rocketmq reads topics of Apache RocketMQ 4.9 and 5.x for millrace's jobs: it is a [consumer.Broker] that joins a
// consumer group as RocketMQ's own clients do, and pulls queue by queue.
//
// Members share queues by RocketMQ's rules, so a job may be a member of a group beside others of its kind; groups must not
// mix clients that subscribe differently. A redelivery comes by the group's retry topic, with its first topic restored.
//
// Offsets are RocketMQ's own, so that its tools show and reset them. What a checkpoint knows beyond an offset is kept in
// topics beside the group's; docs/decisions/0010-checkpoints-at-the-broker.md says how.
package rocketmq
