package actors

import (
	"slices"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// waysOf says of each channel of a plan which ones its messages may come to, itself included.
func waysOf(plan *pipeline.Plan) [][]bool {
	leads := make([][]bool, len(plan.Targets))

	for _, i := range slices.Backward(plan.Order) {
		leads[i] = make([]bool, len(plan.Targets))
		leads[i][i] = true

		for _, target := range plan.Targets[i] {
			for k, reached := range leads[target] {
				leads[i][k] = leads[i][k] || reached
			}
		}
	}

	return leads
}

// aim notes which messages of a block are for one channel only: those that were replayed so, which come by the retry topic.
func (p *puller) aim(b *block, messages []*pipeline.Message) {
	if p.slot.lease.Queue.Topic != consumer.RetryTopic(p.plan.Job.Source.Group) {
		return
	}

	for i, m := range messages {
		name := m.Props[consumer.PropReplayChannel]
		if name == "" {
			continue
		}

		at := slices.IndexFunc(p.channels, func(c *channel) bool { return c.spec.Name == name })
		if at < 0 {
			p.log.Warn("a message was replayed for a channel that the job does not have; it takes every route",
				p.queueField(p.slot), zap.Int64("offset", int64(m.Origin.Offset)), zap.String("channel", name))

			continue
		}

		if b.aims == nil {
			b.aims = slices.Repeat([]int{-1}, len(messages))
		}

		b.aims[i] = at
	}
}

// astray says whether a route of the lane's channel leads neither to the channel that the message at the chain is for, nor on
// from there.
func (l *lane) astray(route int) bool {
	t := l.current.t
	if l.sinking > 0 || t.block == nil || t.block.aims == nil { // what is gathered is for everybody
		return false
	}

	aim := t.block.aims[t.index]
	if aim < 0 {
		return false
	}

	target := l.ch.plan.Targets[l.ch.index][route]

	return !l.ch.leads[target][aim] && !l.ch.leads[aim][target]
}
