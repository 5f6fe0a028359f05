// Package record turns the events of a run into figures, and figures into the files that a run
// leaves.
//
// A [Collector] observes one run: it counts per node and per edge and can end the record at an
// instant that has passed already, because the verdict on a model comes later than the model. A
// [Folder] holds the runs of a plan, whole or not at all, and assembles from them what other
// programs read: summary.json, and for each list of [Data] a CSV file. A new list is a file with
// its elements, its columns and its rows, a field of [Data], and what the Collector counts for it.
// Package stats finds out what the runs show together, and which points differ; package safetensors
// writes the models, and package lockfile keeps other programs from writing into the same folder.
// Times are in seconds, sizes in bytes, accuracies fractions.
package record
