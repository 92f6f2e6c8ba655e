// Package producer sends messages to RocketMQ 4.x and 5.x. A [Producer] finds topics through name servers, spreads messages
// over their queues, keeps those of one key in order, and goes on with another broker when one fails.
package producer
