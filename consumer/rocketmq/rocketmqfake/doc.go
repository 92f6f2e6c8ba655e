// Package rocketmqfake is a RocketMQ cluster in this process: name server and brokers that answer on the wire as the real
// ones do, as far as a client of consumer/rocketmq can see. Where rocketmqtest shows that our client works with the real
// servers, this package shows that it survives what those do only on a bad day: it has switches for it ([Faults]). It needs
// no Java, and over in-memory connections it runs in virtual time (testing/synctest).
//
// That it answers like a real broker is itself tested: one table of questions is put to both.
//
// Messages live in memory. Nothing is replicated, compressed or expired by itself.
package rocketmqfake
