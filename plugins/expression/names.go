package expression

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	exprtypes "github.com/expr-lang/expr/types"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/document"
)

const body = "body"

// fixedNames are the names that stand for themselves, with values of the type that they have.
func fixedNames() map[string]any {
	return map[string]any{
		"id": "", "key": "", "tag": "", "topic": "", "text": "", "born": time.Time{}, "delivery": 0,
		"props": map[string]string{}, body: nil,
	}
}

// Names are more names that stand for themselves, each with a value of the type that it has; nil is any type.
type Names map[string]any

// with returns the fixed names and more.
func (n Names) with() map[string]any {
	all := fixedNames()
	maps.Copy(all, n)

	return all
}

// lookup returns what evaluates a path.
func lookup(p *path) eval {
	if p.more {
		return func(s *Scope) Value { return of(s.more[p.root]) }
	}

	switch p.root {
	case "id":
		return func(s *Scope) Value { return ofText(s.m.ID) }
	case "key":
		return func(s *Scope) Value { return ofText(s.m.Key) }
	case "tag":
		return func(s *Scope) Value { return ofText(s.m.Tag) }
	case "topic":
		return func(s *Scope) Value { return ofText(s.m.Topic) }
	case "text":
		return func(s *Scope) Value { return ofText(string(s.m.Body)) }
	case "delivery":
		return func(s *Scope) Value { return ofInt(s.m.Origin.Delivery) }
	case "born":
		return func(s *Scope) Value { return Value{kind: kindOther, any: s.m.Born} }
	case body:
		return func(s *Scope) Value { return s.get(p.path) }
	}

	if p.prop == "" {
		return func(s *Scope) Value {
			props := s.m.Props
			if props == nil {
				props = map[string]string{}
			}

			return Value{kind: kindOther, any: props}
		}
	}

	return func(s *Scope) Value {
		if v, ok := s.m.Props[p.prop]; ok {
			return ofText(v)
		}

		return Value{}
	}
}

// path is a name and the fixed steps behind it.
type path struct {
	root string
	path document.Path // behind body
	prop string        // behind props
	more bool          // root is one of Names
}

// paths puts one identifier in the place of body or props with their fixed steps, so that no more than that is fetched.
type paths struct {
	known map[string]*path // by identifier
	more  Names
}

// Visit replaces a node; what is below it was visited before.
func (p paths) Visit(n *ast.Node) { //nolint:gocritic // the interface asks for it
	switch at := (*n).(type) {
	case *ast.IdentifierNode:
		if _, ok := p.more[at.Value]; ok {
			p.known[at.Value] = &path{root: at.Value, more: true}
		} else if _, ok := fixedNames()[at.Value]; ok {
			p.known[at.Value] = &path{root: at.Value}
		}
	case *ast.MemberNode:
		if known := p.at(at.Node); known != nil && !at.Method {
			p.replace(n, known.step(at.Property))
		}
	case *ast.ChainNode:
		p.replace(n, p.at(at.Node))
	}
}

// at returns the path that a node stands for; nil for none.
func (p paths) at(n ast.Node) *path {
	at, ok := n.(*ast.IdentifierNode)
	if !ok {
		return nil
	}

	return p.known[at.Value]
}

func (p paths) replace(n *ast.Node, with *path) { //nolint:gocritic // replaces what it points to
	if with != nil {
		p.known[with.String()] = with
		ast.Patch(n, &ast.IdentifierNode{Value: with.String()})
	}
}

// String returns the identifier of the path; with steps it is one that nobody can write.
func (p *path) String() string {
	switch {
	case p.prop != "":
		return p.root + " " + p.prop
	case !p.path.IsRoot():
		return p.root + " " + p.path.String()
	default:
		return p.root
	}
}

// step returns the path with one more step; nil when that is not a fixed one.
func (p *path) step(property ast.Node) *path {
	switch at := property.(type) {
	case *ast.StringNode:
		switch {
		case p.root == body:
			return &path{root: p.root, path: p.path.Member(at.Value)}
		case p.root == "props" && p.prop == "" && at.Value != "":
			return &path{root: p.root, prop: at.Value}
		}
	case *ast.IntegerNode:
		if p.root == body && at.Value >= 0 {
			return &path{root: p.root, path: p.path.Element(at.Value)}
		}
	}

	return nil
}

// resolve puts paths into a tree, and returns all that it reads, by identifier. It fails for a name that is none, with a
// proposal.
func resolve(tree *ast.Node, more Names) (map[string]*path, error) { //nolint:gocritic // replaces what it points to
	p := paths{known: make(map[string]*path), more: more}
	ast.Walk(tree, p)

	r := resolver{
		declared: make(map[string]bool), called: make(map[string]bool), read: make(map[string]*path), known: p.known,
	}
	ast.Walk(tree, &r)

	for _, n := range r.others {
		switch {
		case r.declared[n]:
		case r.called[n]:
			return nil, fmt.Errorf("unknown function %q; %s", n, pipeline.Suggest(n, builtin.Names))
		default:
			problem := fmt.Sprintf("unknown name %q; ", n)

			if near := pipeline.Suggest(n, slices.Sorted(maps.Keys(more.with()))); strings.HasPrefix(near, "did you mean") {
				problem += near + " "
			}

			return nil, errors.New(problem + "the body's fields are reached as body." + n)
		}
	}

	return r.read, nil
}

// resolver collects names.
type resolver struct {
	declared    map[string]bool
	called      map[string]bool
	known, read map[string]*path
	others      []string
}

// Visit notes a node.
func (r *resolver) Visit(n *ast.Node) { //nolint:gocritic // the interface asks for it
	switch at := (*n).(type) {
	case *ast.VariableDeclaratorNode:
		r.declared[at.Name] = true
	case *ast.CallNode:
		if f, ok := at.Callee.(*ast.IdentifierNode); ok {
			r.called[f.Value] = true
		}
	case *ast.IdentifierNode:
		if p := r.known[at.Value]; p != nil {
			r.read[at.Value] = p
		} else {
			r.others = append(r.others, at.Value)
		}
	}
}

// types says what the names are, for the checker.
func types(read map[string]*path, more Names) exprtypes.Map {
	all := make(exprtypes.Map)

	for text, v := range more.with() {
		all[text] = exprtypes.Any
		if v != nil {
			all[text] = exprtypes.TypeOf(v)
		}
	}

	for identifier := range read {
		if _, ok := all[identifier]; !ok {
			all[identifier] = exprtypes.Any
		}
	}

	return all
}
