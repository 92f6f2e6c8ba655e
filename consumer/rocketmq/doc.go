// Package rocketmq reads topics of Apache RocketMQ 4.9 and 5.x for millrace's jobs: it is a [consumer.Broker] whose members
// join a consumer group as RocketMQ's own clients do, and pull queue by queue.
//
// Members share queues by RocketMQ's averaging rule. A message that was sent back comes again by the group's retry topic,
// under the name of the topic that it was published to. The members of a group must subscribe to the same.
//
// Offsets are RocketMQ's own, so that its tools show and reset them. What a checkpoint knows beyond its offset is kept in
// topics beside the group's: docs/decisions/0012-checkpoints-in-topics-of-rocketmq.md.
package rocketmq
