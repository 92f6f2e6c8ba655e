package enrich

import (
	"encoding"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/internal/place"
	"github.com/millrace/millrace/plugins/internal/value"
)

// Options say which table is joined, by what, and where its columns go.
type Options struct {
	// Table is the file. Required.
	Table string `help:"The file of the table." option:"table,required"`
	// Format is how the file is written. The zero value goes by the ending of its name.
	Format Format `default:"auto" help:"How the file is written; auto: by the ending of its name." option:"format"`
	// Separator stands between the columns of CSV. The zero value is a tab in files that end in .tsv, else a comma.
	Separator string `help:"What stands between columns of CSV; a comma, or a tab in .tsv files." option:"separator"`
	// Key is what a message is joined by. Required.
	Key value.Value `help:"What of the message is looked up, such as body.station." option:"key,required"`
	// Column is the column that Key is looked up in. The zero value is the first of CSV; JSON has no first one.
	Column string `help:"The column that the key is looked up in; the first one of CSV." option:"column"`
	// Columns are those that the message gets. None: all but Column.
	Columns []string `help:"The columns that the message gets; all others when none is named." option:"columns"`
	// Types says what the texts of CSV are that go into bodies. Columns that it does not name are texts.
	Types map[string]Type `help:"What columns of CSV are in the body: text, number or bool; text when left out." option:"types"`
	// Into is where they go: props, props.NAME for properties named NAME.COLUMN, body, or body.NAME for an object there. The
	// zero value is props.
	Into place.Place `default:"props" help:"Where the columns go: props, props.NAME, body or body.NAME." option:"into"`
	// Missing says what becomes of a message whose key is not in the table. The zero value lets it pass as it is.
	Missing Missing `default:"pass" help:"What becomes of a message that has no row." option:"missing"`
	// Reload is how often the file is looked at, when messages come. The zero value is 10 s.
	Reload plugins.Duration `default:"10s" help:"How often the file is looked at for changes." option:"reload"`
	// MaxSize is how large the file may be, in bytes. The zero value is 64 MiB.
	MaxSize plugins.Size `default:"64MiB" help:"The largest file; the table takes a few times that in memory." option:"max_size"`
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Adds to messages what a table in a file knows about them.",
		Text: "The table is CSV with a line of names on top, or JSON: a list of objects, or objects one after the other. A " +
			"key that is in it twice is a mistake. It is read before the job starts, and again when the time or the size of " +
			"the file has changed: all lanes go on with the old one until the new one is there. One that cannot be read is " +
			"logged, and the old one stays. Replace the file by renaming a complete one, so that no half of it is read.\n\n" +
			"The columns become properties, named NAME.COLUMN for props.NAME, or fields of the JSON body: of the body itself, " +
			"or of the object at body.NAME, which is made when it is missing. Fields that are there already are overwritten. " +
			"There, values of a JSON table stay what they are, and those of CSV are texts, numbers or bools as types says. A " +
			"null of JSON, and an empty number or bool of CSV, adds nothing.",
		Example: "enrich: { table: stations.csv, key: body.station, columns: [name], into: body.station_data, missing: reject }",
		Metrics: []plugins.Metric{
			{Name: "matched", Help: "Messages with a row."},
			{Name: "missed", Help: "Messages without one."},
			{Name: "reloads", Help: "Times that the table was read again."},
			{Name: "failed_reloads", Help: "Times that it could not be, and the old one stayed."},
		},
	}
}

var _ plugins.Validator = Options{}

// Validate refuses what finds no column.
func (o Options) Validate() error {
	switch {
	case o.Table == "":
		return errors.New("table: is required")
	case o.Key.IsZero():
		return errors.New("key: is required")
	case o.Format == FormatAuto && o.format() == FormatAuto:
		return fmt.Errorf("format: the name %q does not tell; it is csv or json", o.Table)
	case o.format() == FormatJSON && o.Column == "":
		return errors.New("column: is required for JSON, whose columns have no order")
	case o.format() == FormatJSON && o.Separator != "":
		return errors.New("separator: is for CSV")
	case len(o.Types) > 0 && o.format() == FormatJSON:
		return errors.New("types: are for CSV; the values of JSON have their own")
	case len(o.Types) > 0 && !o.Into.InBody():
		return errors.New("types: are for a place in the body; properties are texts")
	case utf8.RuneCountInString(o.Separator) > 1:
		return fmt.Errorf("separator: %q is more than one character", o.Separator)
	case o.Separator != "" && strings.ContainsAny(o.Separator, "\"\r\n\ufffd"):
		return fmt.Errorf("separator: %q cannot be one", o.Separator)
	}

	for name := range o.Types {
		if len(o.Columns) > 0 && !slices.Contains(o.Columns, name) {
			return fmt.Errorf("types: %q is not among the columns; %s", name, pipeline.Suggest(name, o.Columns))
		}
	}

	for i, name := range o.Columns {
		if slices.Contains(o.Columns[:i], name) {
			return fmt.Errorf("columns[%d]: %q is there twice", i, name)
		}
	}

	return nil
}

// withDefaults fills in what is zero.
func (o Options) withDefaults() Options {
	o.Format = o.format()

	if o.Separator == "" {
		o.Separator = ","
		if strings.EqualFold(filepath.Ext(o.Table), ".tsv") {
			o.Separator = "\t"
		}
	}

	if o.Reload == 0 {
		o.Reload = plugins.Duration(10 * time.Second)
	}

	if o.MaxSize == 0 {
		o.MaxSize = 64 << 20
	}

	return o
}

// format is the given one, or that of the name's ending.
func (o Options) format() Format {
	if o.Format != FormatAuto {
		return o.Format
	}

	switch strings.ToLower(filepath.Ext(o.Table)) {
	case ".csv", ".tsv":
		return FormatCSV
	case ".json", ".jsonl", ".ndjson":
		return FormatJSON
	default:
		return FormatAuto
	}
}

// listed is the type of options that are one of a few words.
const listed = "text"

// Format is how a table is written.
type Format uint8

// How it can be written.
const (
	// FormatAuto: as the ending of the file's name says.
	FormatAuto Format = iota
	// FormatCSV: lines of columns, the first with their names.
	FormatCSV
	// FormatJSON: a list of objects, or objects one after the other.
	FormatJSON
)

var (
	_ encoding.TextUnmarshaler = (*Format)(nil)
	_ plugins.Typed            = Format(0)
)

func formats() []string { return []string{"auto", "csv", "json"} }

// OptionType lists the formats.
func (Format) OptionType() (name string, values []string) { return listed, formats() }

// UnmarshalText parses a name.
func (f *Format) UnmarshalText(text []byte) error {
	i, err := indexOf(formats(), text)
	*f = Format(i)

	return err
}

// Missing is what becomes of a message without a row.
type Missing uint8

// What can become of it.
const (
	// MissingPass: it goes on as it is.
	MissingPass Missing = iota
	// MissingReject: it is rejected.
	MissingReject
	// MissingDrop: it is filtered.
	MissingDrop
)

var (
	_ encoding.TextUnmarshaler = (*Missing)(nil)
	_ plugins.Typed            = Missing(0)
)

func missings() []string { return []string{"pass", "reject", "drop"} }

// OptionType lists what can become of it.
func (Missing) OptionType() (name string, values []string) { return listed, missings() }

// UnmarshalText parses a name.
func (m *Missing) UnmarshalText(text []byte) error {
	i, err := indexOf(missings(), text)
	*m = Missing(i)

	return err
}

func indexOf(names []string, text []byte) (int, error) {
	i := slices.Index(names, string(text))
	if i < 0 {
		return 0, fmt.Errorf("%q is none of %s", text, strings.Join(names, ", "))
	}

	return i, nil
}

// Type is what the texts in a column of CSV are.
type Type uint8

// What they can be.
const (
	// TypeText: texts.
	TypeText Type = iota
	// TypeNumber: numbers as JSON writes them. An empty text is none.
	TypeNumber
	// TypeBool: true and false. An empty text is neither.
	TypeBool
)

var (
	_ encoding.TextUnmarshaler = (*Type)(nil)
	_ plugins.Typed            = Type(0)
)

func typeNames() []string { return []string{"text", "number", "bool"} }

// OptionType lists what they can be.
func (Type) OptionType() (name string, values []string) { return listed, typeNames() }

// UnmarshalText parses a name.
func (t *Type) UnmarshalText(text []byte) error {
	i, err := indexOf(typeNames(), text)
	*t = Type(i)

	return err
}
