package admin

import (
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/consumer/deadletter"
)

// Letter is a dead letter as it is shown. Its body is there only where it was asked for.
type Letter struct {
	deadletter.Shown

	// Size is the length of the body in bytes.
	Size int `json:"size"`
	// Text is the body where it is text, Bytes where it is none.
	Text  *string `json:"body,omitempty"`
	Bytes []byte  `json:"bodyBase64,omitempty"`
	// Redacted says that a secret has been taken out of the body: it is not what the message has.
	Redacted bool `json:"redacted,omitempty"`
}

// letterOf returns a letter as it is shown, with its body or without.
func letterOf(l *deadletter.Letter, body bool, redact func(string) string) *Letter {
	shown := &Letter{Shown: l.Show(), Size: len(l.Body)}
	if !body {
		return shown
	}

	text := string(l.Body)
	if redact != nil {
		text = redact(text) // also where it is no text, in which nobody would find it later
		shown.Redacted = text != string(l.Body)
	}

	if utf8.ValidString(text) {
		shown.Text = &text
	} else {
		shown.Bytes = []byte(text)
	}

	return shown
}

// Body returns the body, nil where it was not asked for.
func (l *Letter) Body() []byte {
	if l.Text != nil {
		return []byte(*l.Text)
	}

	return l.Bytes
}

// Pick says which dead letters are meant.
type Pick struct {
	// Letters are some by name, Topics mean all in them.
	Letters []deadletter.Place `json:"letters,omitempty"`
	Topics  []string           `json:"topics,omitempty"`
	// Where is an expression that says yes to them; empty means to all.
	Where string `json:"where,omitempty"`
}

// Look says which dead letters are to be shown, and what of them. Without letters and topics all topics with any are meant.
type Look struct {
	Pick

	// Settled shows those too that were replayed or dropped.
	Settled bool
	// Body shows bodies.
	Body bool
	// Max is how many are shown at most; 0 means all.
	Max int
}

// Settling says which dead letters are to be settled.
type Settling struct {
	Pick

	// All means all topics with any, where neither letters nor topics are named.
	All bool `json:"all,omitempty"`
	// DryRun only counts them.
	DryRun bool `json:"dryRun,omitempty"`
	// By leaves out what has died later; zero means the present time.
	By time.Time `json:"by,omitzero"`
}

// Replay says which dead letters are to be published again, and where to.
type Replay struct {
	Settling

	// To is a topic to publish them to; empty means the retries of the group that they failed in.
	To string `json:"to,omitempty"`
	// FailedChannel has only routes taken that lead to the channel that failed.
	FailedChannel bool `json:"failedChannel,omitempty"`
	// Again replays letters by name though they are settled.
	Again bool `json:"again,omitempty"`
	// Rate is how many are replayed a second, 0 means no limit, nil [deadletter.DefaultRate].
	Rate *float64 `json:"rate,omitempty"`
}

// Settled says what has become of dead letters.
type Settled struct {
	// Settled is how many were settled, or would be.
	Settled int `json:"settled"`
	// More says that time was up before the last one: ask for the same again, with By, and with Letters where letters were named.
	More    bool               `json:"more,omitempty"`
	Letters []deadletter.Place `json:"letters,omitempty"`
	By      time.Time          `json:"by,omitzero"`
}

// Edit says what to change of a dead letter before it is replayed. What is nil is left as it is.
type Edit struct {
	Letter deadletter.Place `json:"letter"`
	Key    *string          `json:"key,omitempty"`
	Tag    *string          `json:"tag,omitempty"`
	// Text is the new body, or else Bytes is, for one that is no text.
	Text  *string `json:"body,omitempty"`
	Bytes []byte  `json:"bodyBase64,omitempty"`
	// Props are set after those of Remove are taken away.
	Props  map[string]string `json:"props,omitempty"`
	Remove []string          `json:"remove,omitempty"`
	// To, FailedChannel and Again are as in a [Replay].
	To            string `json:"to,omitempty"`
	FailedChannel bool   `json:"failedChannel,omitempty"`
	Again         bool   `json:"again,omitempty"`
}

// SetBody makes body the new one.
func (e *Edit) SetBody(body []byte) {
	e.Text, e.Bytes = nil, nil

	if text := string(body); utf8.ValidString(text) {
		e.Text = &text
	} else {
		e.Bytes = body
	}
}

// change returns what is changed.
func (e *Edit) change() *deadletter.Edit {
	c := &deadletter.Edit{Key: e.Key, Tag: e.Tag, Props: e.Props, Remove: e.Remove}

	switch body := e.Bytes; {
	case e.Text != nil:
		body = []byte(*e.Text)
		c.Body = &body
	case body != nil:
		c.Body = &body
	}

	return c
}

// Edited says whether an edit has changed anything; a letter that is as it was is not replayed.
type Edited struct {
	Changed bool `json:"changed"`
}
