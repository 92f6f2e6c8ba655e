package pipeline

import "context"

// Emit hands one output of a stage on; it calls the next stage directly and returns when that one has taken the message.
//
// A nil error means that the message was taken, not that it is finished. A non-nil error means that the stage must stop
// and return that error. An emitted message belongs to the next stage; it must not be nil. Emit must only be called
// before Transform returns and from the goroutine that Transform was called on.
type Emit func(m *Message) error

// Transform is one stage of a channel: it makes 0..n messages of one.
//
// Transform is called by one goroutine at a time; each lane has an instance of its own (see [Stage]). To emit nothing and
// return nil filters the message, which finishes it. A returned error fails the source message: it is delivered again
// later, up to the job's limit, unless the error is marked by [RetryAfter] or [Reject]. A transform that fails by itself,
// not by an error of emit, must leave m as it was given, since a retry in place calls it again with the same m. The
// context ends when the message is past its deadline or the lane stops; a transform that blocks must heed it. A panic is
// a failure of that message only.
type Transform interface {
	Transform(ctx context.Context, m *Message, emit Emit) error
}

// TransformFunc is a function as a [Transform].
type TransformFunc func(ctx context.Context, m *Message, emit Emit) error

var _ Transform = TransformFunc(nil)

// Transform calls f.
func (f TransformFunc) Transform(ctx context.Context, m *Message, emit Emit) error {
	return f(ctx, m, emit)
}

// BatchTransform makes 0..n messages of a whole batch; see [Channel].Gather.
//
// The batch belongs to the callee until it returns. A message emitted by it stands for all of the batch: the source
// messages are finished when everything that was emitted is. An error fails every source message of the batch; a
// [BatchError] fails the ones that it names.
type BatchTransform interface {
	TransformBatch(ctx context.Context, batch []*Message, emit Emit) error
}

// BatchTransformFunc is a function as a [BatchTransform].
type BatchTransformFunc func(ctx context.Context, batch []*Message, emit Emit) error

var _ BatchTransform = BatchTransformFunc(nil)

// TransformBatch calls f.
func (f BatchTransformFunc) TransformBatch(ctx context.Context, batch []*Message, emit Emit) error {
	return f(ctx, batch, emit)
}

// Opener is what a [Transform], [BatchTransform] or [Sink] implements when it has something to open. Open is called once
// before the first message; an error stops the job's start. What was opened is closed through io.Closer, if implemented.
type Opener interface {
	Open(ctx context.Context) error
}
