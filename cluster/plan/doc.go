// Package plan reads the file that describes a run: it turns YAML into a syntax tree with positions, reads units,
// decodes sections into plain Go structs, and multiplies a plan out over its sweep.
//
// The path of a plan through the package is
//
//	Parse → (Set, once per --set) → Points → ReadPlan, once per point
//
// The package knows the sections that every plan has: nodes, network, evaluation, stop rule, schedule and sweep. What stands
// under data, model, train, architecture and a link's delay stays a [Node] here; whoever knows those names decodes it
// with [Decode] and complains with [Errorf], so that its messages point at the file as this package's own do.
//
// The YAML accepted is the part of the language that has one meaning: maps, lists and scalars, in block or flow style.
// Anchors, aliases, tags, merge keys, directives and further documents are errors, as are duplicate and unknown keys.
package plan
