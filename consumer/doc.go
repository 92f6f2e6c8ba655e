// Package consumer is the broker side of millrace: the contract that a broker fulfils ([Broker], [Member]), the in-flight
// [Window] of a queue, and the rules for start positions, checkpoints and the sharing of queues among members.
//
// There are no actors here. Package actors drives a Member; the packages below this one implement it.
package consumer
