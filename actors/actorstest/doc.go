// Package actorstest tries a job of your own in a time machine: the real runtime in virtual time (testing/synctest), over the
// broker in memory, under faults that a seed draws. Calls of the broker are refused, slow or unheard, queues change hands, are
// sought and go back, processes join, stop and are killed, and stages and sinks fail. Then comes peace, and everything has to
// end as docs/guarantees.md says.
//
//	func TestJobLosesNothing(t *testing.T) {
//		actorstest.Run(t, build, actorstest.Plan{Messages: 200})
//	}
//
// A run that breaks a rule says which one, by which message, queue and offset, what has happened to them, and the seed, with
// which MILLRACE_SEED makes that run again. What is drawn is the same then; what happens at the very same time may come in
// another order.
//
// # What is checked of foreign jobs
//
// The package knows nothing of what a job does. It follows each message through all that it becomes: what stages emit, which
// routes take it, and what sinks say to it. A message is finished when every part of it is, whether it was filtered, split,
// sent two ways or gathered with others. So the rules I1 to I9, I11 and I12 are checked of any job. For I10 the most parts that
// a message has had is taken for the most that it can have, and the actors' mailboxes are not looked into.
//
// What it cannot know is whether a sink that said nil has stored anything, and whether a message that was filtered should have
// been: Plan.Check holds the [Result] against what you know.
//
// # What jobs must bear
//
// Everything runs in the bubble of a synctest: plugins must end what they start when they are closed, heed their contexts,
// and not use goroutines that began outside. Who talks to a server keeps the virtual clock from moving meanwhile, so put a
// fake in place of it; jobfile's BuildWith does so for sinks. Up to three processes of the job run at a time, each with plugins
// of its own making.
package actorstest
