// Package pipelinetest holds what the tests of stages and sinks need: messages to begin with, a [Recorder] that stands for
// the next stage, and the suites that every Transform and every Sink must pass, [TestTransform] and [TestSink].
//
// The suites find data races only when the tests run with -race.
package pipelinetest
