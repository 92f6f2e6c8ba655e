package expression

import (
	"errors"
	"fmt"
	"strings"

	"github.com/expr-lang/expr/file"
)

// placeError is an error at a place in the text of an expression.
type placeError struct {
	message      string
	line, column int // from 1
}

var _ error = (*placeError)(nil)

// Error says what is wrong, and where.
func (e *placeError) Error() string {
	if e.line > 1 {
		return fmt.Sprintf("%s (line %d, column %d)", e.message, e.line, e.column)
	}

	return fmt.Sprintf("%s (column %d)", e.message, e.column)
}

// oneLine is an error of expr-lang without the picture of the place below it.
func oneLine(err error) error {
	at, ok := errors.AsType[*file.Error](err)
	if !ok {
		return err
	}

	message := at.Message
	if message == "unexpected token EOF" {
		message = "the expression ends too early"
	}

	if types, ok := strings.CutPrefix(message, "interface conversion: interface {} is "); ok {
		message = "a value is " + types
	}

	return &placeError{message: message, line: at.Line, column: at.Column + 1}
}

// Excerpt returns what an error of [Expression.Eval], or of its value, shows of the expression, on one line. Of a long
// expression, or one of many lines, it is the line that the error is in, or the first one.
func (e Expression) Excerpt(err error) string {
	if at, ok := errors.AsType[*placeError](err); ok {
		return excerpt(e.text, at.line, at.column)
	}

	return excerpt(e.text, 0, 0)
}

// shown is how many characters of an expression an error shows.
const shown = 60

// excerpt is the text of an expression on a line, short enough for an error: around a place, whose line and column count from
// 1, or its beginning where they are 0.
func excerpt(text string, line, column int) string {
	const cut = "…"

	lines := strings.Split(text, "\n")
	from, to := 0, len(lines)

	for from < to-1 && strings.TrimSpace(lines[from]) == "" {
		from++
	}

	for to > from+1 && strings.TrimSpace(lines[to-1]) == "" {
		to--
	}

	at := from
	if line > from && line <= to {
		at = line - 1
	}

	runes := []rune(strings.TrimRight(lines[at], " \t\r"))
	begin, end := 0, len(runes)

	for begin < end && (runes[begin] == ' ' || runes[begin] == '\t') {
		begin++
	}

	before, behind := at > from, at < to-1

	if end-begin > shown {
		first := begin
		begin = max(begin, min(column-1-shown/2, end-shown))
		before = before || begin > first
		behind = behind || begin+shown < end
		end = min(end, begin+shown)
	}

	short := strings.TrimSpace(string(runes[begin:end]))

	if before {
		short = cut + " " + short
	}

	if behind {
		short += " " + cut
	}

	return short
}
