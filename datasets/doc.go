// Package datasets holds labelled data in memory and names the batches that workers train on.
//
// A Set is a matrix of inputs with one label per row. It is immutable once made, so any number
// of runs may share it. A reader or generator (the packages below this one) delivers a Source;
// Holdout splits a pool into a training and a test part; a Scaler, fitted on training rows,
// brings numeric columns to a common range; package datasets/partition gives every worker its
// rows; a Sampler turns a worker's rows into batches.
//
// The package keeps no state: a batch is a function of (seed, worker, pass, step), a split one
// of (n, share, seed). A worker that restarts repeats its batches bit for bit.
package datasets
