// Package expression evaluates expressions over messages, in the language of expr-lang (https://expr-lang.org):
//
//	body.mag >= 6 && tag in ["quake", "shock"]
//
// The names are id, key, tag, topic, text (the body as text), props.NAME, born (a time), delivery, and body (the JSON document)
// with what is in it: body.user.name, body.list[0], body["a name"]. What a message does not have is nil; so is what is missing
// anywhere on a path.
//
// Expressions made of the operators and of the functions in calls.go run as closures over typed values, which fetch no more of
// the body than the fields that they name. All others run in expr-lang's own machine. Both give the same results: a test holds
// them against each other.
package expression
