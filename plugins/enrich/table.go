package enrich

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/plugins/document"
)

// table is what was read of a file. It does not change.
type table struct {
	columns []string // those that messages get
	rows    map[string]row
}

// row has a cell for each column of the table.
type row []cell

// cell is a text, or JSON where it goes into the body. One that is not there adds nothing: it belongs to an object of JSON that
// does not have the column, or null in it, or is an empty number or bool of CSV.
type cell struct {
	text  string
	there bool
}

// parse reads a table.
func parse(text []byte, o Options) (*table, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // the mark that some programs put before UTF-8

	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("the file is empty")
	}

	if o.Format == FormatJSON {
		return parseJSON(text, o)
	}

	return parseCSV(text, o)
}

// add takes in a row. A key that is empty or there already is a mistake.
func (t *table) add(key string, r row) error {
	if key == "" {
		return errors.New("the key is empty")
	}

	if _, ok := t.rows[key]; ok {
		return fmt.Errorf("the key %.100q is there twice", key)
	}

	t.rows[key] = r

	return nil
}

func parseCSV(text []byte, o Options) (*table, error) {
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, _ = utf8.DecodeRuneInString(o.Separator)
	r.ReuseRecord = true

	names, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("the names of the columns: %w", err)
	}

	names = slices.Clone(names)

	if o.Column == "" {
		o.Column = names[0]
	}

	t := &table{columns: o.Columns, rows: make(map[string]row)}
	if len(t.columns) == 0 {
		t.columns = without(names, o.Column)
	}

	places, err := find(names, append([]string{o.Column}, t.columns...))
	if err != nil {
		return nil, err
	}

	for name := range o.Types {
		if !slices.Contains(t.columns, name) {
			return nil, fmt.Errorf("types: there is no column %q among %.200q", name, t.columns)
		}
	}

	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}

		if err != nil {
			return nil, fmt.Errorf("%w", err)
		}

		cells, err := t.cells(record, places[1:], o)
		if err == nil {
			err = t.add(strings.Clone(record[places[0]]), cells)
		}

		if err != nil {
			line, _ := r.FieldPos(0)

			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// cells returns those of a line of CSV.
func (t *table) cells(record []string, places []int, o Options) (row, error) {
	r := make(row, len(t.columns))

	for i, at := range places {
		if !o.Into.InBody() {
			r[i] = cell{strings.Clone(record[at]), true} // alone, so that the rest of the line can go

			continue
		}

		var err error
		if r[i], err = typed(record[at], o.Types[t.columns[i]]); err != nil {
			return nil, fmt.Errorf("column %q: %w", t.columns[i], err)
		}
	}

	return r, nil
}

// typed returns a text of CSV as JSON.
func typed(text string, t Type) (cell, error) {
	if t == TypeText {
		return cell{string(document.AppendText(nil, text)), true}, nil
	}

	text = strings.TrimSpace(text)
	if text == "" {
		return cell{}, nil
	}

	d, err := document.Parse([]byte(text))

	switch {
	case err != nil:
	case t == TypeNumber && d.Root().Kind() == document.Number, t == TypeBool && d.Root().Kind() == document.Bool:
		return cell{strings.Clone(text), true}, nil
	}

	return cell{}, fmt.Errorf("%.100q is no %s", text, typeNames()[t])
}

// find returns where wanted names stand among names.
func find(names, wanted []string) ([]int, error) {
	places := make([]int, len(wanted))

	for i, name := range wanted {
		places[i] = slices.Index(names, name)

		if places[i] < 0 {
			return nil, fmt.Errorf("there is no column %q among %.200q", name, names)
		}

		if slices.Contains(names[places[i]+1:], name) {
			return nil, fmt.Errorf("there are two columns %q", name)
		}
	}

	return places, nil
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}
