// Package embedded is the default broker of millrace: a durable log on Pebble, in a directory of the local disk, used by
// one process at a time. It needs nothing installed.
//
// [Open] gives a [Broker], which is a [consumer.Broker] and a [consumer.Publisher]. Publish returns when the messages are
// on stable storage; publishers that come together share one fsync. Topics have queues with dense offsets from 0; groups
// have members, which share the queues inside the process, and checkpoints that are fenced by the epochs of their leases.
// Messages that are sent back wait for their due time in the store and move to the group's retry topic then.
//
// What cannot be read is reported with its queue and offset as a [consumer.DamagedError] and is never left out silently.
// After the first write that the disk refuses the broker takes nothing more, says why in every answer ([ErrFailed]), and
// has kept all that it acknowledged: open the directory again when the disk is well. A full disk ([ErrDiskFull]) is refused
// to publishers before, while commits go on; once it is full in earnest, the broker goes on by itself when there is room again.
//
// The format on disk is described in docs/embedded.md.
package embedded
