// Package syntax is the text of a plan as a tree: YAML with the position of every value, paths of
// keys that name values, canonical text, and errors that show the line and a caret.
//
// The YAML accepted is the part of the language that has one meaning: maps, lists and scalars, in
// block or flow style. Anchors, aliases, tags, merge keys, directives and further documents are
// errors, as are duplicate keys.
package syntax
