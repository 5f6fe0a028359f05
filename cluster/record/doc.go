// Package record turns the events of a run into figures, and figures into the files that a run
// leaves.
//
// A [Collector] observes one run: it counts per node and per edge and can end the record at an
// instant that has passed already, because the verdict on a model comes later than the model. A
// [Folder] holds the runs of a plan, whole or not at all, and assembles from them what other
// programs read: summary.json, curve.csv, models.csv, links.csv, updates.csv, selections.csv and
// measured.csv. What the runs show together, and which points differ, is found out by package
// stats. Times are in seconds, sizes in bytes, accuracies fractions.
package record
