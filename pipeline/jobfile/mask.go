package jobfile

import (
	"regexp"
	"strings"
)

// In `{ key: ${NAME} }` YAML takes the braces of the variable for its own. Before it is asked, those and the other signs
// with a meaning inside of brackets are therefore replaced by characters that nobody writes, one for one, so that columns
// stay what they are; what it answers is put back.
//
//nolint:gochecknoglobals // constants
var (
	variable = regexp.MustCompile(`\$\{[^}\n]*\}`)
	masking  = strings.NewReplacer("{", "\ue7c0", "}", "\ue7c1", "[", "\ue7c2", "]", "\ue7c3", ",", "\ue7c4")
	unmask   = strings.NewReplacer("\ue7c0", "{", "\ue7c1", "}", "\ue7c2", "[", "\ue7c3", "]", "\ue7c4", ",")
)

// mask hides the signs of variables from YAML.
func mask(src string) string { return variable.ReplaceAllStringFunc(src, masking.Replace) }
