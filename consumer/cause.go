package consumer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Properties of a dead letter that hold its [Cause]. A dead letter has all that are not empty.
const (
	PropDeadStage      = "millrace.dead.stage"
	PropDeadError      = "millrace.dead.error"
	PropDeadStack      = "millrace.dead.stack"
	PropDeadDeliveries = "millrace.dead.deliveries"
	PropDeadAttempts   = "millrace.dead.attempts"
	PropDeadGroup      = "millrace.dead.group"
	PropDeadTime       = "millrace.dead.time"

	// PropDead is what the names of all of them begin with.
	PropDead = "millrace.dead."
)

// What of a cause is kept at most, in bytes. RocketMQ's brokers take 32 KiB of properties altogether.
const (
	maxCauseError    = 4 << 10
	maxCauseStack    = 8 << 10
	maxCauseAttempts = 4 << 10
	maxAttemptError  = 512
)

// Cause is what put a message into the dead letters. It is stored in properties of the dead letter.
type Cause struct {
	// Topic is the dead-letter topic; empty means the group's own. It is not stored.
	Topic string
	// Group is whose dead letter it is, and Time when it became one. [Cause.Props] fills in what is empty.
	Group string
	Time  time.Time
	// Stage is "channel/stage", Error the error's text, Stack the stack of a panic (may be empty).
	Stage, Error, Stack string
	// Deliveries is how often the message was tried.
	Deliveries int
	// Attempts are failures of the message as far as they are known, oldest first, the last one included.
	Attempts []Attempt
}

// Attempt is one failure of a message.
type Attempt struct {
	Time time.Time `json:"time"`
	// Delivery is the attempt's number, from 1.
	Delivery int `json:"delivery"`
	// Stage is "channel/stage", Error the error's text.
	Stage string `json:"stage"`
	Error string `json:"error"`
}

// Props returns the cause as properties, for brokers to add to the dead letter. They are bounded in size: long texts are cut,
// and of the attempts the last ones are kept. Where they are empty, group and now are put for Group and Time.
func (c Cause) Props(group string, now time.Time) map[string]string {
	if c.Group != "" {
		group = c.Group
	}

	if !c.Time.IsZero() {
		now = c.Time
	}

	props := map[string]string{
		PropDeadStage: Cut(c.Stage, maxAttemptError), PropDeadError: Cut(c.Error, maxCauseError),
		PropDeadStack: Cut(c.Stack, maxCauseStack), PropDeadDeliveries: strconv.Itoa(c.Deliveries),
		PropDeadAttempts: attemptsText(c.Attempts), PropDeadGroup: group,
		PropDeadTime: now.UTC().Format(time.RFC3339Nano),
	}
	maps.DeleteFunc(props, func(_, value string) bool { return value == "" })

	return props
}

// attemptsText returns as many of the last attempts as there is room for.
func attemptsText(attempts []Attempt) string {
	var text string

	for _, a := range slices.Backward(attempts) {
		a.Stage, a.Error, a.Time = Cut(a.Stage, maxAttemptError), Cut(a.Error, maxAttemptError), a.Time.UTC()

		one, err := json.Marshal(a)
		if err != nil || len(one)+len(text)+len("[,]") > maxCauseAttempts {
			break
		}

		text = "," + string(one) + text
	}

	if text == "" {
		return ""
	}

	return "[" + text[1:] + "]"
}

// CauseOf returns the cause that a dead letter's properties hold; ok is false when they are of no dead letter. What of them
// cannot be read is left empty: it may have been written by somebody else.
func CauseOf(props map[string]string) (c Cause, ok bool) {
	deliveries, ok := props[PropDeadDeliveries]
	if !ok {
		return Cause{}, false
	}

	c = Cause{
		Group: props[PropDeadGroup], Stage: props[PropDeadStage], Error: props[PropDeadError], Stack: props[PropDeadStack],
	}
	c.Deliveries, _ = strconv.Atoi(deliveries)
	c.Time, _ = time.Parse(time.RFC3339Nano, props[PropDeadTime])

	if err := json.Unmarshal([]byte(props[PropDeadAttempts]), &c.Attempts); err != nil {
		c.Attempts = nil
	}

	return c, true
}

// Cut returns a text of at most so many bytes, without half a character at its end; what is cut says how much it was.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}

	tail := fmt.Sprintf("… (%d bytes more)", len(text)-most)

	return strings.ToValidUTF8(text[:max(most-len(tail), 0)], "") + tail
}
