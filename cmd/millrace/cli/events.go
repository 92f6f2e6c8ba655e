package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/pipeline"
)

// event is a line of `run --json`. Fields that an event does not have are left out.
type event struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
	Job   string    `json:"job"`
	// Text says it in words.
	Text string `json:"text,omitempty"`
	// Progress is in "progress" events, End in "stopped" ones.
	Progress *progress `json:"progress,omitempty"`
	End      *end      `json:"end,omitempty"`
}

// progress are the numbers of a job.
type progress struct {
	State     string        `json:"state"`
	Seconds   float64       `json:"seconds"`
	Admitted  int64         `json:"admitted"`
	Completed int64         `json:"completed"`
	Filtered  int64         `json:"filtered"`
	SentBack  int64         `json:"sentBack"`
	Dead      int64         `json:"dead"`
	InFlight  int           `json:"inFlight"`
	Lag       int64         `json:"lag"`
	Hung      int           `json:"hung"`
	Queues    []queueNumber `json:"queues"`
}

type queueNumber struct {
	Queue     string          `json:"queue"`
	Committed pipeline.Offset `json:"committed"`
	Min       pipeline.Offset `json:"min"`
	Next      pipeline.Offset `json:"next"`
	End       pipeline.Offset `json:"end"`
	InFlight  int             `json:"inFlight"`
}

// end is how a job ended.
type end struct {
	Clean      bool                       `json:"clean"`
	Committed  map[string]pipeline.Offset `json:"committed"`
	Unfinished int                        `json:"unfinished"`
}

func progressOf(s *actors.Snapshot, took time.Duration) event {
	p := &progress{
		State: s.State, Seconds: took.Round(time.Millisecond).Seconds(), Admitted: s.Counts.Admitted,
		Completed: s.Counts.Completed, Filtered: s.Counts.Filtered, SentBack: s.Counts.SentBack,
		Dead: s.Counts.DeadLettered, Hung: s.Hung, Queues: []queueNumber{},
	}

	for i := range s.Queues {
		q := &s.Queues[i]
		p.InFlight += q.InFlight
		p.Lag += int64(q.End - q.Min)
		p.Queues = append(p.Queues, queueNumber{
			Queue: q.Queue.String(), Committed: q.Committed, Min: q.Min, Next: q.Next, End: q.End, InFlight: q.InFlight,
		})
	}

	return event{Time: s.At, Event: "progress", Job: s.Job, Progress: p}
}

// emit writes an event as a line.
func (s *session) emit(e event) {
	text, err := json.Marshal(e)
	if err != nil {
		return // it has nothing that could not be written
	}

	s.telling.Lock()
	defer s.telling.Unlock()

	_, _ = s.redact.Writer(s.Out).Write(append(text, '\n'))
}

// tell passes on what is worth a line. It is called by actors and must not wait long: it writes a line.
func (s *session) tell(e actors.Event) {
	name, text := inWords(e)
	if text == "" {
		return
	}

	s.announce(e.JobName(), name, text)
}

// announce tells of an event.
func (s *session) announce(job, name, text string) {
	if s.asJSON {
		s.emit(event{Time: time.Now(), Event: name, Job: job, Text: text})

		return
	}

	s.screen.notef("%s: %s", job, text)
}

// inWords says what an event means to somebody who watches; empty for the others.
func inWords(e actors.Event) (name, text string) {
	switch e := e.(type) {
	case *actors.MessageReturned:
		return "message-returned", fmt.Sprintf("message %s is sent back for %v after delivery %d: %v",
			e.MessageID, e.Delay, e.Delivery, e.Err)
	case *actors.MessageDead:
		return "message-dead", fmt.Sprintf("message %s is a dead letter: %v", e.MessageID, e.Err)
	case *actors.MessageDropped:
		return "message-dropped", fmt.Sprintf("message %s is dropped: %v", e.MessageID, e.Err)
	case *actors.LaneHung:
		return "lane-hung", fmt.Sprintf("lane %s-%d hangs in %s with message %s; it is replaced",
			e.Channel, e.Lane, e.Stage, e.MessageID)
	case *actors.GroupWarned:
		if e.Warning == "" {
			return "group-mended", "what was wrong with the group is mended"
		}

		return "group-warned", "warning: " + e.Warning
	case *actors.BreakerOpened:
		return "breaker-opened", fmt.Sprintf("channel %s pauses, since nearly everything fails at %s, again in %v: %v",
			e.Channel, e.Stage, e.Retry, e.Err)
	case *actors.BreakerClosed:
		return "breaker-closed", fmt.Sprintf("channel %s goes on: a message has got through %s after %v",
			e.Channel, e.Stage, e.Open.Round(time.Millisecond))
	case *actors.QueueAssigned:
		if e.From > 0 || e.Done > 0 {
			return "queue-assigned", fmt.Sprintf("%s goes on at %s, with %s above it", e.Queue, number(e.From),
				plural(int(e.Done), "finished message"))
		}
	case *actors.QueueWaits:
		return "queue-waits", fmt.Sprintf("%s cannot be read, again in %v: %v", e.Queue, e.Retry, e.Err)
	case *actors.OffsetJumped:
		return "offset-jumped", fmt.Sprintf("%s goes on at %s; what was from %s on is gone",
			e.Queue, number(e.To), number(e.From))
	case *actors.OffsetRewound:
		return "offset-rewound", fmt.Sprintf("%s: the broker's offset is back from %s to %s",
			e.Queue, number(e.From), number(e.To))
	case *actors.ReturnRefused:
		return "return-refused", fmt.Sprintf("%s at %s: the broker does not take it back, again in %v: %v",
			e.Queue, number(e.Offset), e.Retry, e.Err)
	case *actors.CommitFailed:
		return "commit-failed", fmt.Sprintf("%s: the commit failed: %v", e.Queue, e.Err)
	}

	return "", ""
}

// tellEnd says how a job ended.
func (s *session) tellEnd(job *running) {
	r := job.report

	if s.asJSON {
		e := &end{Clean: r.Clean, Committed: make(map[string]pipeline.Offset), Unfinished: r.UnfinishedCount}
		for q, o := range r.Committed {
			e.Committed[q.String()] = o
		}

		s.emit(event{Time: time.Now(), Event: "stopped", Job: job.name, Text: endText(r), End: e})

		return
	}

	s.screen.notef("%s  %s", job.name, endText(r))

	for _, u := range r.Unfinished {
		s.screen.notef("  %s at %s  message %s  %s", u.Queue, number(u.Offset), u.MessageID, u.Holder)
	}

	if more := r.UnfinishedCount - len(r.Unfinished); more > 0 {
		s.screen.notef("  and %s more", number(more))
	}
}

// endText says in a line how a job ended.
func endText(r *actors.Report) string {
	how, left := "stopped clean", "nothing left unfinished"

	switch {
	case r.Err != nil:
		how = "failed"
	case !r.Clean:
		how = "stopped"
	}

	if r.UnfinishedCount > 0 {
		left = plural(r.UnfinishedCount, "message") + " left unfinished, to come again"
	}

	committed := committedText(r.Committed)
	if committed != "" {
		committed = "   committed: " + committed
	}

	return fmt.Sprintf("%s in %s%s   %s", how, span(r.Took), committed, left)
}

// committedText lists offsets; the name of a topic stands at the first of its queues.
func committedText(committed map[pipeline.Queue]pipeline.Offset) string {
	queues := make([]pipeline.Queue, 0, len(committed))

	for q := range committed {
		if committed[q] > 0 {
			queues = append(queues, q)
		}
	}

	slices.SortFunc(queues, compareQueues)

	parts := make([]string, len(queues))

	for i, q := range queues {
		name := q.String()
		if i > 0 && queues[i-1].Topic == q.Topic && queues[i-1].Broker == q.Broker {
			name = fmt.Sprintf("/%d", q.ID)
		}

		parts[i] = name + " " + number(committed[q])
	}

	return strings.Join(parts, "  ")
}

func compareQueues(a, b pipeline.Queue) int {
	if c := strings.Compare(a.Topic, b.Topic); c != 0 {
		return c
	}

	if c := strings.Compare(a.Broker, b.Broker); c != 0 {
		return c
	}

	return a.ID - b.ID
}
