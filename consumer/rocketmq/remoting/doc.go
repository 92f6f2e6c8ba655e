// Package remoting speaks the wire protocol of Apache RocketMQ 4.x and 5.x: frames, connections that carry many calls at
// once in both directions, signatures and TLS. It knows nothing of what the calls mean.
//
// A [Client] keeps one connection an address and makes it when it is first needed. Every call has a deadline. What comes
// from the other side is bounded and never trusted: a frame that cannot be read ends its connection and fails the calls on
// it, and nothing else.
package remoting
