package rocketmq_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/millrace/millrace/actors"
)

// aGroupIsSharedWithJava has a job join a group in which RocketMQ's own push consumer works, and take over when that leaves.
// Each side also works off what the other has failed. While the job joins, both may work on a queue that Java has not let go of
// yet, as two members in Java do; from then on everything is done once.
func aGroupIsSharedWithJava(a *act) {
	const n = 80

	owned := func() int { return len(happened[*actors.QueueAssigned](a)) - len(happened[*actors.QueueRevoked](a)) }
	inJava, leaves := a.joinsInJava()

	a.publishes(n)
	a.until("all is done in Java", a.allWritten)

	r := a.starts(actors.Options{}, 0, func(_ context.Context, body string, number int) error {
		if strings.HasSuffix(body, "3") && number == 1 {
			return errors.New("not yet")
		}

		return nil
	})

	a.until("the job has half of the queues", func() bool { return owned() >= a.queues/2 })

	for again := true; again; {
		from := a.published

		a.publishes(2 * a.queues)
		a.until("all is done by both", a.allWritten)

		again = a.doneAgain(from)
	}

	from, before := a.published, inJava()

	a.publishes(n)
	a.until("all is done by both", a.allWritten)

	if more := inJava() - before; more == 0 || more == n {
		a.Errorf("%d of %d messages were done in Java", more, n)
	}

	leaves()
	a.until("the job has all queues, and that of the retries", func() bool { return owned() == a.queues+1 })
	a.publishes(n)
	a.until("all is done by the job", a.allWritten)
	a.ends(r)
	a.Logf("%d messages were published; %d were done in Java", a.published, inJava())
	a.balances(2)

	if a.doneAgain(from) {
		a.Errorf("done twice is something of the last %d: %v", a.published-from, a.written)
	}
}

// doneAgain tells whether one of the messages from a number on was written twice.
func (a *act) doneAgain(from int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()

	for n := from; n < a.published; n++ {
		if a.written["m-"+strconv.Itoa(n)] > 1 {
			return true
		}
	}

	return false
}

// joinsInJava has a push consumer in Java join the group. What it does is in the books, and counted; leaves has it end in order.
func (a *act) joinsInJava() (count func() int, leaves func()) {
	a.Helper()

	command := a.cluster.JavaCommand(a.T, "rocketmqtest/testdata/Share.java", a.name, a.name)

	command.Stderr = os.Stderr

	in, err := command.StdinPipe()
	if err != nil {
		a.Fatal(err)
	}

	out, err := command.StdoutPipe()
	if err != nil {
		a.Fatal(err)
	}

	if err := command.Start(); err != nil {
		a.Fatal(err)
	}

	done, silent := 0, make(chan struct{})

	go func() {
		defer close(silent)

		for lines := bufio.NewScanner(out); lines.Scan(); {
			if body, found := strings.CutPrefix(lines.Text(), "D "); found {
				a.note(func() {
					a.written[body]++
					done++
				})
			}
		}
	}()

	count = func() int {
		a.mu.Lock()
		defer a.mu.Unlock()

		return done
	}

	return count, func() {
		if err := in.Close(); err != nil {
			a.Error(err)
		}

		<-silent

		if err := command.Wait(); err != nil {
			a.Error(err)
		}
	}
}
