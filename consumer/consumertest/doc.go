// Package consumertest holds what tests need of a broker: [Run], the suite that every consumer.Broker must pass, and
// [Broker], one in memory that keeps the whole contract, can be made to fail in seeded ways ([Faults], [Broker.Reassign],
// [Broker.Crash] and others), and writes down what it was asked to do ([Call], [Commit]).
//
// The Broker has no goroutine of its own. Its timers are the runtime's, so that it works in virtual time (testing/synctest)
// when it was made inside the bubble.
package consumertest
