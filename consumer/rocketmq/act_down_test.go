package rocketmq_test

import (
	"context"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// aSinkThatIsDownBuriesNothing has the sink fail for longer than all attempts of a message would last: the channel pauses, tries
// one message at a time, and goes on when the sink is back. No message is a dead letter, and none is written twice.
func aSinkThatIsDownBuriesNothing(a *act) {
	const away = 6 * time.Second

	a.attempts = 2
	a.down.Store(true)
	a.publishes(40)

	r := a.starts(actors.Options{}, 0, func(context.Context, string, int) error { return nil })

	a.until("the channel pauses", func() bool { return len(happened[*actors.BreakerOpened](a)) > 0 })

	select {
	case <-time.After(away):
	case <-a.Context().Done():
	}

	a.down.Store(false)
	a.until("all is written", a.allWritten)
	a.until("the channel goes on", func() bool { return len(happened[*actors.BreakerClosed](a)) > 0 })

	a.ends(r)

	opened, closed := happened[*actors.BreakerOpened](a), happened[*actors.BreakerClosed](a)
	if len(opened) != 1 || len(closed) != 1 || opened[0].Stage != "sink" || closed[0].Tried > 5 {
		a.Errorf("opened %+v, closed %+v", opened, closed)
	} else {
		a.Logf("the channel has paused for %v after %d of %d had failed, and tried %d messages; %d had been sent back",
			closed[0].Open.Round(time.Millisecond), opened[0].Failed, opened[0].Seen, closed[0].Tried,
			len(happened[*actors.MessageReturned](a)))
	}

	a.balances(1)

	if dead := happened[*actors.MessageDead](a); len(dead) > 0 {
		a.Errorf("%d dead letters, the first: %+v", len(dead), dead[0])
	}

	if end := a.ask(remoting.GetMaxOffset, consumer.DeadLetterTopic(a.name), 0); end != "0" {
		a.Errorf("the dead letters end at %s", end)
	}
}
