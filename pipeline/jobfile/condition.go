package jobfile

import (
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/expression"
)

// condition compiles the `when` of a route; nil for one that always holds, and after a mistake.
func (d *decoder) condition(n *node) func(*pipeline.Message) (bool, error) {
	switch {
	case n.kind != single:
		d.mistakef(n.at, "when is %s; it should be an expression", n.is())
	case n.text == isFalse:
		d.mistakef(n.at, "when is always false, so no message takes this route; correct it, or remove the route")
	case n.text == isTrue:
	default:
		c, err := expression.ParseCondition(n.text)
		if err != nil {
			d.mistakef(n.at, "when: %v", err)

			break
		}

		holds := c.Func()

		return func(m *pipeline.Message) (bool, error) {
			ok, err := holds(m)
			if err != nil {
				return false, pipeline.Reject(err)
			}

			return ok, nil
		}
	}

	return nil
}
