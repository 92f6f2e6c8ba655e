package sql

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/internal/value"
)

// Options say where and what a [Sink] writes.
type Options struct {
	// DSN is the database: postgres://user:password@host:5432/name, or "host=... user=... dbname=...". Required.
	DSN plugins.Secret `help:"The database, such as postgres://user:password@host:5432/name." option:"dsn,required"`
	// Table is the table, with its schema in front where that is not the default one. Required.
	Table string `help:"The table; schema.table where it is not in the default schema." option:"table,required"`
	// Columns are the columns to write and what goes there. Required.
	Columns map[string]value.Value `help:"The columns to write, each with its value, such as body.mag." option:"columns,required"`
	// Key are the columns of the table's primary key, or of another unique key, by which a row is there already.
	Key []string `help:"Columns of a unique key by which a row is there already." option:"key"`
	// Conflict says what becomes of a row that is there already. The zero value updates where there is a Key, and fails
	// otherwise.
	Conflict Conflict `default:"auto" help:"What becomes of a row that is there; auto: update with a key." option:"conflict"`
	// Parent says what becomes of a row that refers to one of another table which is not there. The zero value tries again.
	Parent Parent `default:"retry" help:"What becomes of a row that refers to one that is not there." option:"missing_parent"`
	// Connections is how many connections there are at most. The zero value is 4.
	Connections int32 `default:"4" help:"The most connections at a time." option:"connections"`
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Writes messages as rows into a table of PostgreSQL.",
		Text: "A batch is one transaction. A row that the table does not take, since a value has the wrong type or breaks a " +
			"constraint, is rejected alone, and the others are written. Values go as text, which PostgreSQL turns into the " +
			"column's type; lists and objects go as JSON, for columns of json and jsonb; what is not in a message is NULL.\n\n" +
			"A row that refers to one which is not there (a foreign key) is tried again, since that one may be on its way; " +
			"missing_parent: reject rejects it as the others.\n\n" +
			"Delivery is at least once: a batch whose end was not heard of is written again. With a key, writing a row again " +
			"changes nothing; without one it is there twice.",
		Example: "sql: { dsn: 'postgres://miller:s3cret@localhost/quakes', table: quakes, key: [id], " +
			"columns: { id: key, mag: body.mag, region: body.place.region, doc: body } }",
		Metrics: []plugins.Metric{
			{Name: "rows", Help: "Rows written, those that were there already included."},
			{Name: "batches", Help: "Transactions tried."},
			{Name: "rejected", Help: "Rows that the table does not take."},
			{Name: "orphans", Help: "Rows to be tried again, since they refer to one that is not there."},
			{Name: "reconnects", Help: "Times that all connections were given up since one was lost."},
		},
	}
}

var _ plugins.Validator = Options{}

// Validate refuses what makes no statement.
func (o Options) Validate() error {
	if _, err := pgxpool.ParseConfig(o.DSN.Reveal()); err != nil {
		return errors.New("dsn: is none; it looks like postgres://user:password@host:5432/name") // the cause shows the password
	}

	for _, column := range o.Key {
		if _, ok := o.Columns[column]; !ok {
			return fmt.Errorf("key: %q is not among the columns: %s", column, strings.Join(o.columns(), ", "))
		}
	}

	switch {
	case len(o.Columns) == 0:
		return errors.New("columns: a row needs one at least")
	case len(o.Key) == 0 && (o.Conflict == ConflictUpdate || o.Conflict == ConflictIgnore):
		return errors.New("conflict: needs a key, by which a row is there already")
	case o.Connections < 0:
		return errors.New("connections: is negative")
	}

	return nil
}

// columns are the names in their order.
func (o Options) columns() []string { return slices.Sorted(maps.Keys(o.Columns)) }

// statement is the SQL that writes one row.
func (o Options) statement() string {
	columns := o.columns()
	quoted, places := make([]string, len(columns)), make([]string, len(columns))

	var updates []string

	for i, column := range columns {
		quoted[i], places[i] = quote(column), fmt.Sprintf("$%d", i+1)

		if !slices.Contains(o.Key, column) {
			updates = append(updates, quoted[i]+" = EXCLUDED."+quoted[i])
		}
	}

	text := fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)",
		pgx.Identifier(strings.Split(o.Table, ".")).Sanitize(), strings.Join(quoted, ", "), strings.Join(places, ", "))

	if len(o.Key) == 0 || o.Conflict == ConflictFail {
		return text
	}

	key := make([]string, len(o.Key))
	for i, column := range o.Key {
		key[i] = quote(column)
	}

	text += fmt.Sprintf(" ON CONFLICT (%s) DO ", strings.Join(key, ", "))

	if o.Conflict == ConflictIgnore || len(updates) == 0 {
		return text + "NOTHING"
	}

	return text + "UPDATE SET " + strings.Join(updates, ", ")
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// Conflict says what becomes of a row that is there already.
type Conflict uint8

// What can become of it.
const (
	// ConflictAuto: ConflictUpdate where there is a key, else ConflictFail.
	ConflictAuto Conflict = iota
	// ConflictUpdate: it gets the new values.
	ConflictUpdate
	// ConflictIgnore: it stays.
	ConflictIgnore
	// ConflictFail: the message is rejected.
	ConflictFail
)

var (
	_ encoding.TextUnmarshaler = (*Conflict)(nil)
	_ plugins.Typed            = Conflict(0)
)

// conflicts are the names, by their numbers.
func conflicts() []string { return []string{"auto", "update", "ignore", "fail"} }

// OptionType lists what can become of it.
func (Conflict) OptionType() (name string, values []string) { return "text", conflicts() }

// UnmarshalText parses a name.
func (c *Conflict) UnmarshalText(text []byte) error {
	i := slices.Index(conflicts(), string(text))
	if i < 0 {
		return fmt.Errorf("%q is none of %s", text, strings.Join(conflicts(), ", "))
	}

	*c = Conflict(i)

	return nil
}

// Parent says what becomes of a row that refers to one which is not there.
type Parent uint8

// What can become of it.
const (
	// ParentRetry: it is tried again, as long as the job's retries go.
	ParentRetry Parent = iota
	// ParentReject: the message is rejected.
	ParentReject
)

var (
	_ encoding.TextUnmarshaler = (*Parent)(nil)
	_ plugins.Typed            = Parent(0)
)

// OptionType lists what can become of it.
func (Parent) OptionType() (name string, values []string) { return "text", []string{"retry", "reject"} }

// UnmarshalText parses retry or reject.
func (p *Parent) UnmarshalText(text []byte) error {
	switch string(text) {
	case "retry":
		*p = ParentRetry
	case "reject":
		*p = ParentReject
	default:
		return fmt.Errorf("%q is neither retry nor reject", text)
	}

	return nil
}
