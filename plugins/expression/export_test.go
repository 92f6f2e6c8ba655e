package expression

// ParseSlow compiles an expression for expr-lang's machine in any case.
func ParseSlow(text string) (Expression, error) { return parse(text, nil, false) }

// IsFast reports whether an expression runs as closures.
func (e Expression) IsFast() bool { return e.code.eval != nil }
