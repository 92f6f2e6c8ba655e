package jobfile

import (
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// The truth values as YAML writes them.
const (
	isTrue  = "true"
	isFalse = "false"
)

// single reads a scalar.
func (r *reader) single(from ast.Node, at Place) *node {
	n := &node{kind: single, at: at}

	switch from := from.(type) {
	case *ast.NullNode:
		return &node{at: at}
	case *ast.LiteralNode:
		if from.Value != nil {
			n.text = unmask.Replace(from.Value.Value)
		}

		n.quoted = true
	case *ast.StringNode:
		n.text = unmask.Replace(from.Value)
		r.written(n, from.Token)
	case *ast.BoolNode:
		n.text, n.value = from.Token.Value, from.Value
	case *ast.IntegerNode:
		n.text, n.value = from.Token.Value, from.Value
	case *ast.FloatNode:
		n.text, n.value = from.Token.Value, from.Value
	case *ast.InfinityNode:
		n.text, n.value = from.Token.Value, from.Value
	case *ast.NanNode:
		n.text, n.value = from.Token.Value, from.GetValue()
	default:
		r.mistakef(at, "this is nothing that a job file can hold; use text, a number, a list or a table")

		return &node{at: at}
	}

	if n.value == nil {
		n.value = n.text
		r.expand(n)
	}

	return n
}

// written finds out whether the characters of a text stand in the file as they are.
func (r *reader) written(n *node, t *token.Token) {
	origin := strings.TrimSpace(unmask.Replace(t.Origin))

	switch t.Type { //nolint:exhaustive // texts have these types only
	case token.SingleQuoteType, token.DoubleQuoteType:
		n.quoted = true
		n.line = strings.Trim(origin, `'"`) == n.text
	default:
		n.line = origin == n.text
	}
}

// expand replaces the variables in a text. A plain text is then what it looks like, as if it had been written so.
func (r *reader) expand(n *node) {
	if r.literal {
		return
	}

	e, err := r.variables.expand(n.text)
	if err != nil {
		r.mistakef(n.at, "%v", err)
		r.unset[n.at] = true

		return
	}

	if !e.used {
		return
	}

	n.raw, n.text, n.value, n.line = n.text, e.text, e.text, false
	n.secret = len(e.secrets) > 0
	r.secrets = append(r.secrets, e.secrets...)
}

// plain returns what a text would be without quotes around it: a truth value, a number or the text.
func plain(text string) any {
	switch text {
	case isTrue:
		return true
	case isFalse:
		return false
	}

	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i
	}

	if f, err := strconv.ParseFloat(text, 64); err == nil && strings.Trim(text, "0123456789.+-eE") == "" {
		return f
	}

	return text
}
