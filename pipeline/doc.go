// Package pipeline says what a message is, what can become of it, and what a job looks like.
//
// It is the vocabulary of millrace and holds no goroutine, no clock and no broker: a [Message] goes through the stages
// of a [Channel] ([Transform] values, called one after the other), ends in a [Sink] or is routed on to other channels,
// and every failure is an error that may carry an instruction ([RetryAfter], [Reject]). A [Job] is the validated
// description of all of it; [Compile] checks it and package actors runs it.
//
// The package imports the standard library only.
package pipeline
