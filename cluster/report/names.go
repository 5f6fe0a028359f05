package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gradwire/gradwire/cluster/record"
)

const (
	// MaxName is how many characters of a point's name a legend and a heading have room for.
	MaxName = 40
	// MaxListed is how many points or runs a note names; it counts the rest.
	MaxListed = 5
)

// RunName names a run by its number, its point and its seed.
func RunName(r record.Run) string {
	if len(r.Point) == 0 {
		return fmt.Sprintf("run %d (seed %d)", r.Number, r.Seed)
	}
	return fmt.Sprintf("run %d (%s, seed %d)", r.Number, r.Point, r.Seed)
}

// PointName names a point by its values, where a heading names the keys. It cuts each value to its
// share of MaxName characters if together they are longer.
func PointName(p record.Point) string {
	values := make([]string, len(p))
	for i, setting := range p {
		values[i] = setting.Value
	}
	joined := strings.Join(values, ", ")
	if len(p) < 2 || utf8.RuneCountInString(joined) <= MaxName {
		return joined
	}
	for i, v := range values {
		values[i] = Cut(v, max((MaxName+2)/len(p)-2, 3))
	}
	return strings.Join(values, ", ")
}

// SweptKeys returns the keys of the sweep in the order in which they first occur.
func SweptKeys(s record.Summary) []string {
	var keys []string
	for _, g := range s.Groups {
		for _, setting := range g.Point {
			if !slices.Contains(keys, setting.Key) {
				keys = append(keys, setting.Key)
			}
		}
	}
	return keys
}

// ShortKeys cuts keys to the last elements of their paths, but for those that end with the same.
func ShortKeys(keys []string) []string {
	last := func(key string) string { return key[strings.LastIndex(key, ".")+1:] }
	short := make([]string, len(keys))
	for i, key := range keys {
		short[i] = last(key)
		if slices.ContainsFunc(keys, func(other string) bool { return other != key && last(other) == short[i] }) {
			short[i] = key
		}
	}
	return short
}

// ListSome joins the first MaxListed names, and counts the others.
func ListSome(names []string) string {
	text := strings.Join(names[:min(len(names), MaxListed)], "; ")
	if more := len(names) - MaxListed; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// Cut shortens a text to a number of characters, the last of which is then an ellipsis.
func Cut(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	return string(runes[:width-1]) + "…"
}

// Capitalized begins a text with a capital letter.
func Capitalized(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// Printable replaces the characters that a terminal might take for a command.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
