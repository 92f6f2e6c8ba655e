// Package admin asks a RocketMQ cluster what operators want to know of it, and changes what they want changed: topics with what
// their queues hold, groups with how far they are, and where a running group goes on.
package admin
