// Package document reads and changes JSON bodies in place: a body is checked and indexed once, fields are looked up where they
// stand, and all changes of a stage are spliced into one new body, whose index is made on the way. Nothing is decoded that is
// not asked for.
//
// A [Document] is kept with its message (see [Of]), so that the stages behind, and the routes, do not parse the body again.
package document
