package throttle

import (
	"errors"
	"math"

	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/expression"
)

// Options say how much passes.
type Options struct {
	// Messages a second; 0 means no limit. Fractions are fine: 0.1 is one in 10 s.
	Messages float64 `help:"Messages a second; fractions are fine: 0.1 is one in 10 s." option:"messages,main"`
	// Bytes a second, of bodies, keys, tags, ids and properties; 0 means no limit. Either Messages or Bytes is needed.
	Bytes plugins.Size `help:"Bytes a second, of bodies, keys, tags, ids and properties." option:"bytes"`
	// Per is what messages of one rate agree in, such as key or body.user. None: all messages share one rate.
	Per expression.Expression `help:"What has a rate of its own, an expression such as key or body.user." option:"per"`
	// Keys is how many values of Per are known at a time. The zero value is 100000.
	Keys int `default:"100000" help:"How many values of per are known at a time; those seen last." option:"keys"`
	// Burst is how much may pass at once after a rest, as the time in which it would pass evenly; 0 means 1 s.
	Burst plugins.Duration `default:"1s" help:"How much may pass at once after a rest: what passes in this time." option:"burst"`
}

// Validate refuses rates that let everything or nothing pass.
func (o *Options) Validate() error {
	switch {
	case o.Messages < 0 || o.Bytes < 0 || o.Burst < 0 || math.IsNaN(o.Messages) || math.IsInf(o.Messages, 0):
		return errors.New("a rate is a positive number")
	case o.Messages == 0 && o.Bytes == 0:
		return errors.New("messages or bytes is required")
	case o.Keys < 0:
		return errors.New("keys is negative")
	case o.Messages > 0 && o.Messages < 1e-6:
		return errors.New("messages is less than one in 11 days")
	}

	return nil
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Holds messages up so that no more than so many, or so many bytes, pass in a second.",
		Text: "All lanes of the stage in this process share the rate; each further process has it once more. A message that " +
			"has to wait keeps its lane, and so holds up what is behind it: the source is asked for less. The wait counts " +
			"against the channel's timeout, so with n lanes the timeout has to be longer than n messages take at this rate.\n\n" +
			"With per, each value of the expression has the whole rate. A message that waits keeps its lane from those of " +
			"other values, too. What is remembered of a value does not grow with its length. Of more values than keys those " +
			"that were seen longest ago are forgotten, and may have a burst more. A message is rejected when the expression " +
			"fails for it; nil and the empty text are values like others.",
		Example: "throttle: { messages: 100, bytes: 1MiB }",
		Metrics: []plugins.Metric{
			{Name: "passed", Help: "Messages that passed."},
			{Name: "waited", Help: "Messages that had to wait."},
			{Name: "waited_ms", Help: "Milliseconds that messages have waited, all lanes together."},
			{Name: "forgotten", Help: "Values of per that had to be forgotten before their rate was free again."},
		},
	}
}
