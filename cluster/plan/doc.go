// Package plan reads the file that describes a run: it decodes the sections of a syntax tree into
// plain Go structs, checks them, and expands a plan into the points of its sweep.
//
// The path of a plan is
//
//	syntax.Parse → (Set, once per --set) → Points → ReadPlan, once per point
//
// The package knows the sections that every plan has: nodes, network, evaluation, stop rule,
// schedule and sweep. The values of data, model, train, architecture and a link's delay stay a
// [syntax.Node] here. Code that knows those names decodes them with [settings.Decode] and reports
// errors with [syntax.Errorf], so its messages point at the file as this package's do.
package plan
