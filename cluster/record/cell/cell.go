// Package cell writes text into cells of CSV files so that spreadsheets show it and do not run it.
// They take a cell that begins with one of = + - @ for a formula, which can start programs (OWASP,
// "CSV Injection"), and names of classes, points and nodes are whatever a file or a plan says.
package cell

import (
	"strconv"
	"strings"
)

// triggers are the characters that a formula begins with, and those that spreadsheets skip before
// one, also in the full width that some take for the same.
const triggers = "=+-@\t\r\n＝＋－＠"

// Text returns text as a cell has it: with an apostrophe before it, by which spreadsheets know
// text, if it would begin a formula and is no number.
func Text(text string) string {
	if _, err := strconv.ParseFloat(text, 64); err != nil && begins(text) {
		return "'" + text
	}
	return text
}

// Plain returns the text that a cell has; it undoes Text.
func Plain(cell string) string {
	if text, marked := strings.CutPrefix(cell, "'"); marked && begins(text) {
		return text
	}
	return cell
}

// begins reports whether text begins with a trigger, apostrophes aside, of which Plain takes one
// off.
func begins(text string) bool {
	text = strings.TrimLeft(text, "'")
	return text != "" && strings.IndexAny(text, triggers) == 0
}
