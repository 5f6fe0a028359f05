// Package report holds the words and units that describe recorded runs: what an accuracy is of,
// what a point is called, in which unit a time is written. Its rooms show the records: figure draws
// them, text writes tables for a terminal, page puts both on a page of HTML, and diff says where
// two records differ.
package report
