// Package plan reads the file that describes a run: it decodes the sections of a syntax tree into
// plain Go structs, checks them, and multiplies a plan out over its sweep.
//
// The path of a plan is
//
//	syntax.Parse → (Set, once per --set) → Points → ReadPlan, once per point
//
// The package knows the sections that every plan has: nodes, network, evaluation, stop rule,
// schedule and sweep. What stands under data, model, train, architecture and a link's delay stays a
// [syntax.Node] here; whoever knows those names decodes it with [settings.Decode] and complains
// with [syntax.Errorf], so that its messages point at the file as this package's own do.
package plan
