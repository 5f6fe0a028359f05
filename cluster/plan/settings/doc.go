// Package settings turns values of a plan into plain Go structs and back, by the tags of their
// fields, and describes what the tags accept: as a JSON Schema for editors, and as completions for
// a command line.
package settings
