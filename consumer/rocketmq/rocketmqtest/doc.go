// Package rocketmqtest starts real RocketMQ servers for tests: a name server and brokers of a pinned version, on free
// ports, with their files in a directory of the test, and gone when the test ends.
//
// It needs Java (17 is what is tried) and Maven, which fetches the servers once; they are kept in the user's cache
// directory.
package rocketmqtest
