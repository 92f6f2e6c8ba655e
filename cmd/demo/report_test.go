package main

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline"
)

func TestTheReportIsATable(t *testing.T) {
	t.Parallel()

	e := perfect(t, false)
	e.finish(mark{ID: e.majors()[0], Run: 2, Delivery: 1}, true)
	e.queues = append(e.queues, position{group: quakesTopic, queue: pipeline.Queue{Topic: "%RETRY%quakes"}, end: 3})

	v := audit(e)

	var got strings.Builder

	v.write(&got, []counted{{
		job: quakesTopic, completed: 1679, filtered: 28, dead: 1, retried: 2, sentBack: 3, redelivered: 4, panics: 5, hung: 6,
	}}, ", so far")

	const want = `
                  published  completed  filtered  dead-lettered  lag
quakes (1 queue)      1,707      1,679        28              0    3
alerts (1 queue)         40         40         0              0    0

sink       events  repeated
archive     1,679         1
summaries   1,679         1
topic          39         1
alerts         40         0

this run, so far  completed  filtered  dead-lettered  retried  sent back  redelivered  panics  hung lanes
quakes                1,679        28              1        2          3            4       5           6

queue            committed    end  lag
quakes/0             1,707  1,707    0
alerts/0                39     39    0
%RETRY%quakes/0          0      3    3

`
	if got := "\n" + got.String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestTheConclusionIsASentence(t *testing.T) {
	t.Parallel()

	for want, c := range map[string]struct {
		verdict verdict
		stopped bool
	}{
		"books balance: 1,707 published = 1,676 completed + 28 filtered + 3 dead-lettered\n": {
			verdict{quakes: account{published: 1707, completed: 1676, filtered: 28, dead: 3}}, false,
		},
		"stopped: 9 published = 3 completed + 2 filtered + 1 dead-lettered + 3 unfinished\n": {
			verdict{quakes: account{published: 9, completed: 3, filtered: 2, dead: 1}, unfinished: []string{"a", "b"}}, true,
		},
		"THE BOOKS DO NOT BALANCE:\n  p\n  a\n": {
			verdict{problems: []string{"p"}, unfinished: []string{"a"}}, false,
		},
	} {
		var got strings.Builder

		if balance := c.verdict.conclude(&got, c.stopped); got.String() != want || balance == strings.HasPrefix(want, "THE") {
			t.Errorf("%t, %q, want %q", balance, got.String(), want)
		}
	}
}

func TestNumbersHaveCommas(t *testing.T) {
	t.Parallel()

	for n, want := range map[int]string{
		0: "0", 999: "999", 1000: "1,000", 1707: "1,707", 170700: "170,700", 1234567: "1,234,567", -1000: "-1,000",
	} {
		if got := number(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
