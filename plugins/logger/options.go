package logger

import (
	"encoding"
	"errors"
	"fmt"

	"go.uber.org/zap/zapcore"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// Options say what is logged.
type Options struct {
	// Text is the text of the line; empty means "message".
	Text string `default:"message" help:"The text of the line." option:"text,main"`
	// Level is how important the line is. The zero value is info.
	Level Level `default:"info" help:"How important the line is." option:"level"`
	// Fields are what of a message stands in the line; nil means id, key and tag.
	Fields []plugins.Field `help:"What of a message is in the line; id, key and tag by default." option:"fields"`
	// Longest is how much of a field is logged; 0 means 256 B.
	Longest plugins.Size `default:"256B" help:"How much of a field is logged." option:"longest"`
	// PerSecond is how many lines a lane logs in a second, the next line says how many were left out; 0 means 10.
	PerSecond int `default:"10" help:"How many lines a lane logs in a second." option:"per_second"`
}

// Validate refuses negative limits.
func (o *Options) Validate() error {
	if o.PerSecond < 0 || o.Longest < 0 {
		return errors.New("a limit is negative")
	}

	return nil
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Logs messages and lets all of them pass.",
		Text: "Each lane logs so many lines a second and no more, so that a job is not slowed down by its own log. Bodies are " +
			"logged only when the field text is asked for: mind what is in them.",
		Example: "log: { text: seen, level: debug, fields: [id, props.severity] }",
		Metrics: []plugins.Metric{
			{Name: "logged", Help: "Lines logged."},
			{Name: "left_out", Help: "Messages that passed without a line."},
		},
	}
}

// Level is how important a line is.
type Level zapcore.Level

// The levels.
const (
	Debug = Level(zapcore.DebugLevel)
	Info  = Level(zapcore.InfoLevel)
	Warn  = Level(zapcore.WarnLevel)
	Error = Level(zapcore.ErrorLevel)
)

var (
	_ encoding.TextUnmarshaler = (*Level)(nil)
	_ plugins.Typed            = Level(0)
)

func levels() []string { return []string{"debug", "info", "warn", "error"} }

// OptionType lists the levels.
func (Level) OptionType() (name string, values []string) { return "text", levels() }

// UnmarshalText parses the name.
func (l *Level) UnmarshalText(text []byte) error {
	for i, name := range levels() {
		if name == string(text) {
			*l = Debug + Level(i)

			return nil
		}
	}

	return fmt.Errorf("%q is no level; %s", text, pipeline.Suggest(string(text), levels()))
}
