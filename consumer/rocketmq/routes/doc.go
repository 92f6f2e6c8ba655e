// Package routes knows where the topics of a RocketMQ cluster are, as its name servers tell, and what topics and groups are
// called on the wire. A [Table] is shared by all who talk to one cluster.
package routes
