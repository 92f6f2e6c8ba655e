package document

import "slices"

// Index returns what the index of a document says: names and values.
func Index(d *Document) []string {
	all := []string{string(d.Root().Raw())}

	for i := range d.index {
		m := d.member(i)

		escaped := "plain"
		if m.mark == 0 {
			escaped = "escaped"
		}

		all = append(all, string(d.body[m.name.from:m.name.to]), string(d.body[m.value.from:m.value.to]), escaped)
	}

	return all
}

// ModelPut puts a value into decoded JSON, or gone where something is to go.
func ModelPut(doc any, p Path, value, gone any) any {
	if len(p.steps) == 0 {
		return value
	}

	s, rest := p.steps[0], Path{steps: p.steps[1:]}

	switch at := doc.(type) {
	case []any:
		if s.index >= 0 && s.index < len(at) {
			at[s.index] = ModelPut(at[s.index], rest, value, gone)
		}
	case map[string]any:
		if old, ok := at[s.name]; s.index < 0 && (ok || value != gone) {
			at[s.name] = ModelPut(old, rest, value, gone)
		}
	case nil:
		if value == gone {
			break
		}

		return map[string]any{s.name: ModelPut(nil, rest, value, gone)}
	}

	return doc
}

// ModelSweep takes out what is to go.
func ModelSweep(doc, gone any) any {
	switch at := doc.(type) {
	case []any:
		at = slices.DeleteFunc(at, func(v any) bool { return v == gone })
		for i := range at {
			at[i] = ModelSweep(at[i], gone)
		}

		return at
	case map[string]any:
		for name, v := range at {
			if v == gone {
				delete(at, name)
			} else {
				at[name] = ModelSweep(v, gone)
			}
		}
	}

	return doc
}
