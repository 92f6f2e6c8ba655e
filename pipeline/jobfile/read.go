package jobfile

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/millrace/millrace/plugins"
)

// What a file may hold at most. A job file is written by people; the numbers are guesses at what none of them reaches, and
// keep the parser, whose time grows with the square of what it reads, below about a second.
const (
	maxFile   = 256 << 10
	maxTokens = 50_000
	maxDepth  = 64
	// maxNodes counts what aliases and merges repeat as often as they do.
	maxNodes = 100_000
)

// reader turns YAML into nodes.
type reader struct {
	file      string
	variables Variables
	// literal: the file has no variables; ${ stands for itself.
	literal  bool
	mistakes mistakes
	secrets  []plugins.Secret
	// anchors are those of the present document that have been read to their end.
	anchors map[string]*node
	nodes   int
	// unset are the places of texts with a variable that has no value, about which there is nothing else to say.
	unset map[Place]bool
}

func (r *reader) mistakef(at Place, format string, args ...any) {
	r.mistakes = append(r.mistakes, Mistake{File: r.file, Place: at, Problem: fmt.Sprintf(format, args...)})
}

// read returns the documents of a file that are not empty. What could not be read is a mistake.
func (r *reader) read(src []byte) []*node {
	file := r.parse(src)
	if file == nil {
		return nil
	}

	var docs []*node

	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}

		if _, ok := doc.Body.(*ast.CommentGroupNode); ok {
			continue
		}

		r.anchors = make(map[string]*node)

		if n := r.node(doc.Body, 0); n.kind != null {
			docs = append(docs, n)
		}
	}

	return docs
}

// parse runs the YAML parser, within bounds.
func (r *reader) parse(src []byte) (file *ast.File) {
	start := Place{Line: 1, Column: 1}

	if len(src) > maxFile {
		r.mistakef(start, "the file has %d bytes; at most %d are read: split it into several files", len(src), maxFile)

		return nil
	}

	defer func() {
		// The parser is not ours, and a file is what anybody writes.
		if p := recover(); p != nil {
			r.mistakef(start, "the file cannot be read as YAML: the parser gave up (%v); look for what is unusual in it", p)

			file = nil
		}
	}()

	tokens := lexer.Tokenize(mask(string(src)))
	if at, problem := tooMuch(tokens); problem != "" {
		r.mistakef(at, "%s", problem)

		return nil
	}

	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err == nil {
		return file
	}

	if syntax, ok := errors.AsType[yaml.Error](err); ok {
		r.mistakef(place(syntax.GetToken()), "not YAML: %s", unmask.Replace(syntax.GetMessage()))
	} else {
		r.mistakef(start, "not YAML: %s", unmask.Replace(err.Error()))
	}

	return nil
}

// tooMuch says what is too much in a file, before the parser's recursion meets it.
func tooMuch(tokens token.Tokens) (Place, string) {
	if len(tokens) > maxTokens {
		return place(tokens[maxTokens]), fmt.Sprintf("the file has more than %d words and signs; split it", maxTokens)
	}

	const tooDeep = "this is nested too deep; at most %d levels are read"

	brackets, run, line := 0, 0, 0

	for _, t := range tokens {
		if at := place(t); at.Line != line {
			line, run = at.Line, 0
		}

		switch t.Type { //nolint:exhaustive // the others nest nothing
		case token.MappingStartType, token.SequenceStartType:
			brackets++
		case token.MappingEndType, token.SequenceEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType, token.AnchorType, token.TagType:
			if brackets == 0 {
				run++ // "- - - x": each one a level
			}
		}

		if brackets > maxDepth || run > maxDepth {
			return place(t), fmt.Sprintf(tooDeep, maxDepth)
		}
	}

	return Place{}, ""
}

func place(t *token.Token) Place {
	if t == nil || t.Position == nil {
		return Place{Line: 1, Column: 1}
	}

	return Place{Line: max(t.Position.Line, 1), Column: max(t.Position.Column, 1)}
}

// spend counts nodes; false means that there are too many.
func (r *reader) spend(at Place, n int) bool {
	if r.nodes > maxNodes {
		return false
	}

	if r.nodes += n; r.nodes > maxNodes {
		r.mistakef(at, "aliases and merges make more than %d values of the file; write less, or split it", maxNodes)

		return false
	}

	return true
}

// node reads one node of the syntax tree.
func (r *reader) node(from ast.Node, depth int) *node {
	if from == nil {
		return &node{at: Place{Line: 1, Column: 1}}
	}

	at := start(from)
	nothing := &node{at: at}

	if depth > maxDepth {
		r.mistakef(at, "this is nested too deep; at most %d levels are read", maxDepth)

		return nothing
	}

	if !r.spend(at, 1) {
		return nothing
	}

	switch from := from.(type) {
	case *ast.MappingNode:
		return r.table(from.Values, at, depth)
	case *ast.MappingValueNode:
		return r.table([]*ast.MappingValueNode{from}, at, depth)
	case *ast.SequenceNode:
		n := &node{kind: list, at: at}
		for _, item := range from.Values {
			n.items = append(n.items, r.node(item, depth+1))
		}

		return n
	case *ast.AnchorNode:
		n := r.node(from.Value, depth+1)
		r.anchors[name(from.Name)] = n

		return n
	case *ast.AliasNode:
		return r.alias(name(from.Value), at)
	case *ast.TagNode:
		return r.tagged(from, depth)
	default:
		return r.single(from, at)
	}
}

// start returns where a node begins; of a table that is its first key, not the first colon.
func start(from ast.Node) Place {
	switch from := from.(type) {
	case *ast.MappingNode:
		if !from.IsFlowStyle && len(from.Values) > 0 {
			return start(from.Values[0])
		}
	case *ast.MappingValueNode:
		if from.Key != nil {
			return place(from.Key.GetToken())
		}
	}

	return place(from.GetToken())
}

func name(n ast.Node) string {
	if n == nil || n.GetToken() == nil {
		return ""
	}

	return n.GetToken().Value
}

func (r *reader) alias(name string, at Place) *node {
	if n, ok := r.anchors[name]; ok {
		return n
	}

	r.mistakef(at, "no anchor &%s stands above *%s; define it first, or write the value", name, name)
	r.unset[at] = true

	return &node{at: at}
}

// tagged reads a value with a tag. The only ones with a use here are those that say what a value looks like already.
func (r *reader) tagged(from *ast.TagNode, depth int) *node {
	n := r.node(from.Value, depth+1)

	switch tag := from.Start.Value; tag {
	case "!!str":
		if n.kind == single {
			c := *n
			c.value, c.quoted = c.text, true

			return &c
		}
	case "!!map", "!!seq", "!!int", "!!float", "!!bool", "!!null":
	default:
		r.mistakef(place(from.Start), "the tag %s means nothing here; remove it", tag)
	}

	return n
}

// table reads a mapping with its merges. A key that is written in it beats one that is merged into it.
func (r *reader) table(values []*ast.MappingValueNode, at Place, depth int) *node {
	n := &node{kind: table, at: at}

	for _, v := range values {
		keyAt := start(v)

		if _, ok := v.Key.(*ast.MergeKeyNode); ok {
			r.merge(n, r.node(v.Value, depth+1), keyAt)

			continue
		}

		key, ok := r.key(v.Key)
		value := r.node(v.Value, depth+1)

		if value.kind == null && value.at.Line == 1 && value.at.Column == 1 {
			value = &node{at: keyAt}
		}

		if ok {
			r.put(n, entry{key: key, at: keyAt, value: value})
		}
	}

	return n
}

// put adds an entry, unless its key is there already.
func (r *reader) put(n *node, e entry) {
	i := slices.IndexFunc(n.entries, func(old entry) bool { return old.key == e.key })

	switch {
	case i < 0:
		n.entries = append(n.entries, e)
	case n.entries[i].merged && !e.merged:
		n.entries[i] = e
	case !e.merged:
		r.mistakef(e.at, "%q is here twice; line %d has it already: remove one of them", e.key, n.entries[i].at.Line)
	}
}

// merge puts the entries of a table, or of a list of tables, into n.
func (r *reader) merge(n, from *node, at Place) {
	tables := []*node{from}
	if from.kind == list {
		tables = from.items
	}

	for _, t := range tables {
		if t.kind != table {
			r.mistakef(at, "<< merges tables, not %s; give it an alias of a table", t.is())

			continue
		}

		if !r.spend(at, len(t.entries)) {
			return
		}

		for _, e := range t.entries {
			e.merged = true
			r.put(n, e)
		}
	}
}

// key returns the text of a key.
func (r *reader) key(k ast.MapKeyNode) (string, bool) {
	var from ast.Node = k
	if explicit, ok := k.(*ast.MappingKeyNode); ok {
		from = explicit.Value
	}

	switch from := from.(type) {
	case *ast.StringNode:
		return unmask.Replace(from.Value), true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return from.GetToken().Value, true
	default:
		r.mistakef(start(k), "this is no key; use a plain name")

		return "", false
	}
}
