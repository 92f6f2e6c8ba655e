package dedupe

import (
	"errors"
	"time"

	"github.com/millrace/millrace/plugins"
)

// Options say what a duplicate is.
type Options struct {
	// By is what duplicates agree in. The zero value is the key. Messages in which it is empty are never duplicates.
	By plugins.Field `default:"key" help:"What duplicates agree in; a message without it is no duplicate." option:"by,main"`
	// For is how long a message is remembered; 0 means 10 minutes.
	For plugins.Duration `default:"10m" help:"How long a message is remembered." option:"for"`
	// Most is how many messages are remembered, the oldest are forgotten first; 0 means 100,000. Each takes about 150 bytes.
	Most int `default:"100000" help:"How many messages are remembered; the oldest are forgotten first." option:"most"`
}

// Validate refuses a negative limit.
func (o *Options) Validate() error {
	if o.Most < 0 {
		return errors.New("most is negative")
	}

	return nil
}

// withDefaults fills in what is zero.
func withDefaults(o Options) (Options, error) {
	if o.By.IsZero() {
		key, err := plugins.ParseField("key")
		if err != nil {
			return o, err //nolint:wrapcheck // the caller puts the place around it
		}

		o.By = key
	}

	if o.For == 0 {
		o.For = plugins.Duration(10 * time.Minute)
	}

	if o.Most == 0 {
		o.Most = 100_000
	}

	return o, nil
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Filters messages that agree with an earlier one in their key or another field.",
		Text: "The memory is that of this process and this stage: all lanes share it, a second process has one of its own, " +
			"and a restart begins with an empty one. Where messages of a key can go to several processes, or must never pass " +
			"twice, the system behind the sink has to see to it.\n\n" +
			"A message that is delivered again since it has failed is no duplicate of itself. A duplicate is filtered as soon " +
			"as the first has gone on, even if that one fails later and is parked in the dead letters.",
		Example: "dedupe: { by: props.event, for: 1h }",
		Metrics: []plugins.Metric{
			{Name: "passed", Help: "Messages that passed."},
			{Name: "duplicates", Help: "Messages that were filtered."},
			{Name: "forgotten", Help: "Messages that passed and were forgotten early, for want of room."},
		},
	}
}
