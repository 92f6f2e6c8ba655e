package actors

import (
	"context"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// job is what all actors of one running job share. It is complete before the first of them gets a message that needs it,
// and only what stands at its end changes afterwards.
type job struct {
	plan     *pipeline.Plan
	opts     Options
	broker   consumer.Broker
	member   consumer.Member
	clock    *clock
	log      *zap.Logger
	system   *actor.ActorSystem
	root     *actor.RootContext
	engine   *actor.PID
	tracker  *actor.PID
	channels []*channel
	// leads says of each channel which ones its messages may come to, itself included.
	leads   [][]bool
	workers *workers
	// ctx ends when the job has stopped; calls of the broker use it. lanesCtx ends when a drain gives up what still runs.
	ctx, lanesCtx       context.Context
	cancel, cancelLanes context.CancelCauseFunc
	// hung is how many fenced lanes have not come back; restless how many queues were given up while something of them was
	// still in a lane.
	hung, restless atomic.Int64
	attempts       attempts
}

func newJob(plan *pipeline.Plan, broker consumer.Broker, opts Options) *job {
	j := &job{plan: plan, broker: broker, opts: opts, clock: newClock(), log: opts.Logger.Named(plan.Job.Name)}
	j.ctx, j.cancel = context.WithCancelCause(context.Background())
	j.lanesCtx, j.cancelLanes = context.WithCancelCause(j.ctx)
	j.workers = newWorkers(j.ctx.Done())

	return j
}

// wire makes the running channels, once the actors that they report to are known.
func (j *job) wire() {
	specs := j.plan.Job.Channels
	j.channels = make([]*channel, len(specs))

	for i := range specs {
		spec := &specs[i]
		c := &channel{job: j, spec: spec, index: i, inPlace: j.plan.InPlace[i]}

		if spec.Order == pipeline.OrderNone {
			c.inboxes = []*inbox{newInbox(spec.Lanes)}
		} else {
			for range spec.Lanes {
				c.inboxes = append(c.inboxes, newInbox(1))
			}
		}

		c.breaker = newBreaker(c)
		j.channels[i] = c
	}

	for i, c := range j.channels {
		for _, target := range j.plan.Targets[i] {
			c.targets = append(c.targets, j.channels[target])
		}
	}

	j.leads = waysOf(j.plan)
}

func (j *job) in() In { return In{Job: j.plan.Job.Name} }

func (j *job) publish(e Event) { j.system.EventStream.Publish(e) }

func (j *job) queueField(s *slot) zap.Field { return zap.Stringer("queue", s.lease.Queue) }

// contain is deferred around every behaviour that runs no user code: a panic there is a bug of millrace, which stops the
// job with an error instead of taking the user's actor system down or losing a mailbox.
func (j *job) contain(who string) {
	if r := recover(); r != nil {
		err := &pipeline.PanicError{Value: r}
		j.log.Error("a bug in "+who, zap.Error(err), zap.Stack("stack"))
		j.root.Send(j.engine, &giveUp{err: err})
	}
}
