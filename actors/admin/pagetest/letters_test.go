package pagetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/consumer/deadletter"
	"github.com/millrace/millrace/pipeline"
)

// buried is how many dead letters there are: more than the page shows at once.
const buried = 60

// bury puts dead letters into the topic "graves": the first with a script in all of its parts, the second without a cause, as those
// of other consumers.
func bury(t *testing.T, broker *consumertest.Broker) {
	t.Helper()
	broker.CreateTopic("graves", 1)

	for i := range buried {
		m := &pipeline.Message{ID: fmt.Sprint("dead", i), Key: fmt.Sprint("k", i), Body: []byte(`{"amount":null}`), Props: consumer.Cause{
			Stage: "classify/check", Error: "connection refused", Deliveries: 5,
			Attempts: []consumer.Attempt{{Time: time.Now(), Delivery: 5, Stage: "classify/check", Error: "connection refused"}},
		}.Props("quakes", time.Now())}

		switch i {
		case 0:
			m.Key, m.Body = script, []byte(script)
			m.Props = consumer.Cause{
				Stage: "classify/check", Error: script + strings.Repeat("long", 100), Deliveries: 5, Stack: "goroutine 7 [running]:\nmain.check()",
				Attempts: []consumer.Attempt{{Time: time.Now(), Delivery: 5, Stage: "classify/check", Error: script}},
			}.Props("quakes", time.Now())
			m.Props["mine"] = script
		case 1:
			m.Props = nil
		}

		if err := broker.Publish(t.Context(), "graves", []*pipeline.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
}

// lettersOf returns what there is to settle at the broker.
func lettersOf(broker *consumertest.Broker) *admin.DeadLetters {
	return &admin.DeadLetters{
		Shelf:  deadletter.NewDesk(broker, broker),
		Topics: func(context.Context) ([]string, error) { return []string{"graves"}, nil },
		Where: func(text string) (func(*deadletter.Letter) (bool, error), error) {
			if text == "(" {
				return nil, errors.New("it breaks off")
			}

			return func(l *deadletter.Letter) (bool, error) { return l.ID == text, nil }, nil
		},
	}
}

// rows is how many letters are listed.
func rows(n int) step {
	return holds(fmt.Sprintf(`document.querySelectorAll(".letters li").length === %d`, n))
}

func TestDeadLettersAreBrowsedAndSettled(t *testing.T) {
	t.Parallel()

	server := start(t)
	ctx, steps := visit(t, server)

	steps("they are listed, and what comes from messages is text", rows(50),
		holds(`document.querySelector(".letters li").innerText.includes("<script>")`),
		holds(`document.querySelector('[data-letter="graves/0/1"]').innerText.includes("no word why")`),
		press("#letters-more"), rows(buried), holds(`document.querySelector("#letters-more").hidden`))

	looks(t, ctx, steps, "letters")

	steps("one is shown, without its body", press(`[data-letter="graves/0/0"] .name`),
		holds(`document.querySelector("#letter").open && document.querySelector("#letter-show")`),
		holds(`["classify/check", "goroutine 7", "attempts", "mine = <img", "History"].every((text) => document.querySelector("#letter").innerText.includes(text))`),
		holds(`document.querySelector("#letter-body").innerText === ""`))

	steps("the body is shown when it is asked for", press("#letter-show"),
		holds(`document.querySelector("#letter-body").innerText.includes("<script>")`))

	looks(t, ctx, steps, "letter")

	steps("it is dropped after a confirmation", press("#letter-drop"), holds(`document.querySelector("#dialog").open`))
	looks(t, ctx, steps, "drop")
	steps("and gone then", press("#yes"),
		holds(`!document.querySelector("#dialog").open && !document.querySelector("#letter").open`),
		holds(`document.querySelectorAll(".letters li").length === 50 && !document.querySelector('[data-letter="graves/0/0"]')`))

	steps("one is replayed and done by the job", press(`[data-letter="graves/0/2"] .actions button`),
		holds(`document.querySelector("#dialog").open`), press("#yes"),
		holds(`!document.querySelector("#dialog").open && !document.querySelector('[data-letter="graves/0/2"]')`),
		holds(`[...document.querySelectorAll("#queues tbody tr")].some((row) => row.dataset.queue.startsWith("%RETRY%")
			&& row.querySelector("td").innerText === "1")`))

	steps("what settled letters say", press("#letters-settled"), press("#letters-read"),
		holds(`document.querySelector('[data-letter="graves/0/2"]')?.innerText.includes("settled")`))
	steps("and only when they are asked for", press("#letters-settled"))

	steps("a mistake in the filter is told", does(`document.querySelector("#letters-where").value = "("`), press("#letters-read"),
		holds(`document.querySelector("#letters .failed").innerText === "where: it breaks off"`))

	steps("those of a filter are replayed", does(`document.querySelector("#letters-where").value = "dead7"`), press("#letters-read"),
		rows(1), press("#letters-replay"), holds(`document.querySelector("#said").innerText === "1 dead letter would be replayed now."`),
		does(`document.querySelector("#field-failedChannel").click()`), press("#yes"), rows(0))

	steps("what cannot be replayed is told", does(`document.querySelector("#letters-where").value = ""`), press("#letters-read"), rows(50),
		press("#letters-replay"), holds(`document.querySelector("#said").innerText === "57 dead letters would be replayed now."`),
		press("#yes"), holds(`document.querySelector("#dialog .failed").innerText.includes("does not say which group it failed in")`), key(kb.Escape))

	steps("all are dropped", press("#letters-drop"),
		holds(`document.querySelector("#said").innerText === "57 dead letters would be dropped now."`), press("#yes"), rows(0),
		holds(`document.querySelector("#letters .said").innerText === "There are none."`))

	if title, err := chromedp.Run(ctx, chromedp.Title()); err != nil || title != "quakes · millrace" {
		t.Errorf("a script ran: the title is %q, %v", title, err)
	}

	if err := server.Close(); err != nil {
		t.Error(err)
	}
}
