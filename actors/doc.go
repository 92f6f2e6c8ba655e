// Package actors runs a job: it is the only package that imports protoactor-go.
//
// A job is a small tree of actors. The engine is its top: [Props] spawns it below anyone's actor, [Run] and [Start] bring
// an actor system of their own. Below it are the offset tracker and one pull-queue actor for each queue that the job owns;
// beside it are the lanes of the channels, the only actors that run user code and may block. docs/actors.md says who owns
// what and who sends what to whom.
package actors
