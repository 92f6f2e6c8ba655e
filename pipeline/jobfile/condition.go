package jobfile

import "github.com/millrace/millrace/pipeline"

// condition compiles the `when` of a route; nil after a mistake.
func (d *decoder) condition(n *node) func(*pipeline.Message) bool {
	switch {
	case n.kind != single:
		d.mistakef(n.at, "when is %s; it should be an expression", n.is())
	case n.text == isFalse:
		d.mistakef(n.at, "when is always false, so no message takes this route; correct it, or remove the route")
	case n.text == isTrue:
		return func(*pipeline.Message) bool { return true }
	default:
		d.mistakef(n.at, "expressions cannot be read yet; use tag: with the tags that take this route")
	}

	return nil
}
