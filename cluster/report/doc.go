// Package report shows recorded runs to people: a table for the terminal and
// figures as PNG and SVG.
package report
