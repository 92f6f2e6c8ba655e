package edit

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/document"
	"github.com/millrace/millrace/plugins/expression"
)

// Options say what changes. All of them speak of the body as it comes in; no two may change the same field.
type Options struct {
	// Set puts values of expressions at paths of the body, and makes the objects that are missing on the way.
	Set map[string]expression.Expression `help:"Fields of the body that get the value of an expression." option:"set"`
	// Remove lists fields that are removed where they are there.
	Remove []document.Path `help:"Fields that are removed." option:"remove"`
	// Rename gives fields another name or place. What is not there is not renamed.
	Rename map[string]document.Path `help:"Fields that get another name or place, in the body." option:"rename"`
	// Pick lists the only fields that are kept, beside those of Set and Rename. Nil keeps all.
	Pick []document.Path `help:"The only fields that are kept, beside those of set and rename." option:"pick"`
}

// Validate refuses options that change nothing, or one field twice.
func (o *Options) Validate() error {
	if len(o.Set)+len(o.Remove)+len(o.Rename) == 0 && o.Pick == nil {
		return errors.New("nothing is changed; give set, remove, rename or pick")
	}

	if o.Pick != nil && o.Remove != nil {
		return errors.New("pick keeps nothing but its fields, so there is nothing left to remove; leave one of them out")
	}

	_, _, err := o.plan()

	return err
}

// plan returns the changes, and the expressions of those that set.
func (o *Options) plan() (*document.Plan, []expression.Expression, error) {
	c := document.Changes{Remove: o.Remove, Move: o.Rename, Keep: o.Pick}

	var values []expression.Expression

	for _, text := range slices.Sorted(maps.Keys(o.Set)) {
		path, err := document.ParsePath(text)
		if err != nil {
			return nil, nil, fmt.Errorf("set: %w", err)
		}

		c.Set = append(c.Set, path)
		values = append(values, o.Set[text])
	}

	plan, err := document.NewPlan(c)
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // names all that there is to name
	}

	return plan, values, nil
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Sets, removes, renames and picks fields of JSON bodies.",
		Text: "Fields are written as paths below the body: severity, user.name, list[0] or [\"a name\"]. All values and all " +
			"fields are those of the body as it comes in, so the order of the changes does not matter. Everything else in the " +
			"body stays as it is written, numbers with all of their digits. A message is rejected when its body is no JSON or " +
			"has something else where an object should be, and when an expression cannot be evaluated for it. An expression " +
			"that gives nil sets null.",
		Example: `json: { set: { km: 'round(body.miles * 1.609)' }, rename: { mag: magnitude }, remove: [detail] }`,
		Metrics: []plugins.Metric{{Name: "changed", Help: "Messages with a new body."}},
	}
}
