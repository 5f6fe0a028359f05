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

// PointName names a point by its values, where a heading names the keys: a mapping such as
// {kind: gossip, every: 4} as "gossip, every 4". It cuts each value to its share of MaxName
// characters if together they are longer.
func PointName(p record.Point) string {
	values := make([]string, len(p))
	for i, setting := range p {
		values[i] = flat(setting.Value, nil)
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

// PointNames names points for a text without headings, by what differs between them: settings that
// all share are left out, and so is what all mappings of a kind share; numbers are named by their
// keys. Different points have different names.
func PointNames(points []record.Point) []string {
	var keys []string
	for _, p := range points {
		for _, setting := range p {
			if !slices.Contains(keys, setting.Key) {
				keys = append(keys, setting.Key)
			}
		}
	}
	short := ShortKeys(keys)
	parts := make([][]string, len(points))
	for i, key := range keys {
		if len(points) > 1 && !slices.ContainsFunc(points, func(p record.Point) bool {
			return p.Value(key) != points[0].Value(key)
		}) {
			continue
		}
		for k, p := range points {
			if !slices.ContainsFunc(p, func(s record.Setting) bool { return s.Key == key }) {
				continue
			}
			name := flat(p.Value(key), shared(points, key, p.Value(key)))
			first, _ := utf8.DecodeRuneInString(name)
			if !unicode.IsLetter(first) || name == "true" || name == "false" {
				name = short[i] + " " + name
			}
			parts[k] = append(parts[k], name)
		}
	}
	names, times := make([]string, len(points)), map[string]int{}
	for i := range points {
		names[i] = Printable(Cut(strings.Join(parts[i], ", "), MaxName))
		times[names[i]]++
	}
	for i, p := range points {
		if names[i] == "" || times[names[i]] > 1 {
			names[i] = Printable(p.String())
		}
	}
	return names
}

// entry is a key of a mapping with its value.
type entry struct{ key, value string }

// shared are the entries that all mappings of a key and of the kind of this one have in common;
// none if no other mapping is of this kind.
func shared(points []record.Point, key, value string) (common []entry) {
	own := entriesOf(value)
	kind := slices.IndexFunc(own, func(e entry) bool { return e.key == "kind" })
	if kind < 0 {
		return nil
	}
	common, others := slices.Clone(own), false
	for _, p := range points {
		other := entriesOf(p.Value(key))
		if p.Value(key) != value && slices.Contains(other, own[kind]) {
			others = true
			common = slices.DeleteFunc(common, func(e entry) bool { return !slices.Contains(other, e) })
		}
	}
	if !others {
		return nil
	}
	return common
}

// flat writes a mapping as words, its kind first, without some of its entries. An inner mapping stands
// in parentheses, unless it has a kind alone. Other values stay unchanged.
func flat(value string, without []entry) string {
	entries := entriesOf(value)
	if entries == nil {
		return value
	}
	var words []string
	for _, e := range entries {
		text := flat(e.value, nil)
		if inner := entriesOf(e.value); len(inner) > 1 || len(inner) == 1 && inner[0].key != "kind" {
			text = "(" + text + ")"
		}
		switch {
		case e.key == "kind":
			words = slices.Insert(words, 0, text)
		case !slices.Contains(without, e):
			words = append(words, e.key+" "+text)
		}
	}
	return strings.Join(words, ", ")
}

// entriesOf splits a mapping in YAML's flow style; nil of any other text.
func entriesOf(value string) (entries []entry) {
	inner, opens := strings.CutPrefix(value, "{")
	inner, closes := strings.CutSuffix(inner, "}")
	if !opens || !closes {
		return nil
	}
	depth, start, quote := 0, 0, rune(0)
	for i, r := range inner + "," {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '{' || r == '[':
			depth++
		case r == '}' || r == ']':
			depth--
		case r == ',' && depth == 0:
			key, text, ok := strings.Cut(inner[start:i], ":")
			if !ok {
				return nil
			}
			text = strings.TrimSpace(text)
			if n := len(text); n > 1 && text[0] == text[n-1] && strings.ContainsRune(`"'`, rune(text[0])) {
				text = text[1 : n-1]
			}
			entries, start = append(entries, entry{strings.Trim(key, ` "'`), text}), i+1
		}
	}
	return entries
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
