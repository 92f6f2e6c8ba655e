package embedded

import "errors"

// Errors of Open. The texts around them name the directory and the way out.
var (
	// ErrInUse is returned when another broker, of this or another process, has the directory open.
	ErrInUse = errors.New("embedded: the directory is in use by another broker")
	// ErrForeign is returned for a directory that holds something other than a broker.
	ErrForeign = errors.New("embedded: not a broker directory")
	// ErrNewer is returned for a directory that a newer version of the program has written.
	ErrNewer = errors.New("embedded: the directory has a newer format")
	// ErrDamaged is returned when something that all of the broker depends on cannot be read. Single messages that
	// cannot be read are reported by Pull instead, as [consumer.DamagedError].
	ErrDamaged = errors.New("embedded: the store is damaged")
)

// Errors of an open broker.
var (
	// ErrFailed is returned by every call after the disk has refused a write, with the write and its cause. Everything
	// that was acknowledged is kept: close the broker and open it again when the cause is gone. Beside [ErrDiskFull] the
	// broker does so by itself.
	ErrFailed = errors.New("embedded: the broker stopped")
	// ErrDiskFull is returned by Publish when less than Options.KeepFree is left, and by every call beside [ErrFailed] when
	// the disk, or somebody's share of it, is really full: until there is room again, and with Options.NoSync until the
	// broker is opened again.
	ErrDiskFull = errors.New("embedded: the disk is full")
	// ErrBadName is returned for names of topics, groups and instances that are empty, too long, or have other characters
	// than letters, digits, '.', '_', '-' and (topics only) '%'.
	ErrBadName = errors.New("embedded: bad name")
	// ErrQueueCount is returned by CreateTopic when the topic exists with another number of queues.
	ErrQueueCount = errors.New("embedded: the topic has another number of queues")
	// ErrTwice is returned by Join for an instance that is a member of the group already.
	ErrTwice = errors.New("embedded: the instance is a member already")
	// ErrBroadcast is returned by SendBack and DeadLetter of a broadcasting member, which has no retry topic.
	ErrBroadcast = errors.New("embedded: a broadcasting member cannot return messages")
	// ErrTooLarge is returned by Publish for messages that no single write can hold.
	ErrTooLarge = errors.New("embedded: too large for one write")
)
