package enrich

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// builder makes a table of objects.
type builder struct {
	table  *table
	key    string         // the column of the keys
	places map[string]int // of the columns
	all    bool           // every object may bring new columns
	inBody bool           // cells are JSON
}

func parseJSON(text []byte, o Options) (*table, error) {
	b := builder{
		table: &table{columns: o.Columns, rows: make(map[string]row)}, key: o.Column,
		places: make(map[string]int, len(o.Columns)), all: len(o.Columns) == 0, inBody: o.Into.InBody(),
	}

	for i, name := range o.Columns {
		b.places[name] = i
	}

	n := 0

	err := objects(text, func(object map[string]json.RawMessage) error {
		n++

		if err := b.object(object); err != nil {
			return fmt.Errorf("object %d: %w", n, err)
		}

		return nil
	})

	return b.table, err
}

func (b *builder) object(object map[string]json.RawMessage) error {
	key, err := plain(object[b.key])

	switch {
	case err != nil:
		return err
	case !key.there:
		return fmt.Errorf("has no column %q", b.key)
	}

	r := make(row, len(b.table.columns), len(b.table.columns)+len(object))

	for name, raw := range object {
		at, ok := b.place(name)
		if !ok {
			continue
		}

		r = r[:max(len(r), at+1)] // a row of new columns; those before it are shorter

		if r[at], err = b.cell(raw); err != nil {
			return err
		}
	}

	return b.table.add(key.text, r)
}

// cell is a value of JSON as it goes into messages.
func (b *builder) cell(raw json.RawMessage) (cell, error) {
	if !b.inBody {
		return plain(raw)
	}

	if string(raw) == "null" {
		return cell{}, nil
	}

	var line bytes.Buffer // so that a table in many lines does not make bodies of many lines

	err := json.Compact(&line, raw)

	return cell{line.String(), true}, err //nolint:wrapcheck // cannot be: it was read by the same package
}

// place returns where a column stands, if it is wanted.
func (b *builder) place(name string) (int, bool) {
	at, ok := b.places[name]
	if ok || !b.all || name == b.key {
		return at, ok
	}

	at = len(b.table.columns)
	b.places[name] = at
	b.table.columns = append(b.table.columns, name)

	return at, true
}

// objects calls f for each object of a list, or of those that follow each other.
func objects(text []byte, f func(map[string]json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(text))
	isList := bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("["))

	if isList {
		_, _ = d.Token()
	}

	for !isList || d.More() {
		var object map[string]json.RawMessage

		err := d.Decode(&object)
		if errors.Is(err, io.EOF) && !isList {
			return nil
		}

		if err != nil {
			return fmt.Errorf("at byte %d: %w", d.InputOffset(), err)
		}

		if err := f(object); err != nil {
			return err
		}
	}

	if _, err := d.Token(); err != nil { // the end of the list
		return fmt.Errorf("at byte %d: %w", d.InputOffset(), err)
	}

	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("at byte %d: there is more behind the list", d.InputOffset())
	}

	return nil
}

// plain is a value of JSON as text: that of a string, nothing for null, all others as they are written.
func plain(raw json.RawMessage) (cell, error) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return cell{}, nil
	case raw[0] == '"':
		var text string

		if err := json.Unmarshal(raw, &text); err != nil {
			return cell{}, fmt.Errorf("the text %.100q: %w", raw, err)
		}

		return cell{text, true}, nil
	default:
		return cell{string(raw), true}, nil
	}
}
