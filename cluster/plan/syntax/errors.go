package syntax

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is one thing that is wrong with a plan, told so that a person can mend it: where (file,
// line, column and path of keys), what stands there and what is accepted.
type Error struct {
	Pos     Pos
	Path    string // of keys, such as nodes[1].compute.step; empty at the top
	Problem string // one sentence: the offending text and what is accepted
	Line    string // the line of the source, for the caret; empty if the node was made by a program
	cause   error

	unknown, hint, accepted string // parts of Problem, if it is about an unknown word
}

// Errors is several errors of one plan, in the order of the file. It holds at least one.
type Errors []*Error

// Bounds of what is told.
const (
	MaxErrors  = 10  // how many errors of one plan are told
	lineWidth  = 110 // how much of a long source line is shown
	QuoteWidth = 60  // how much of an offending text is quoted
)

// Errorf makes an error about n: its position, path and source line are n's.
// It wraps the error given for a %w in format, if any.
func Errorf(n *Node, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	e := &Error{Problem: err.Error(), cause: errors.Unwrap(err)}
	if n != nil {
		e.Pos, e.Path, e.Line = n.Pos, n.Path(), n.source.line(n.Pos.Line)
	}
	return e
}

// At returns the same error, told to be about one point of a sweep.
func (e *Error) At(point string) *Error {
	at := *e
	at.Problem += "; at " + point
	return &at
}

// KeyErrorf makes an error about the key of f, a field of the map n, rather than about its value.
func KeyErrorf(n *Node, f Field, format string, args ...any) *Error {
	at := *n
	if f.Pos.Line > 0 {
		at.Pos, at.source = f.Pos, f.Value.source
	}
	e := Errorf(&at, format, args...)
	e.Path = f.Value.Path()
	return e
}

func (s *source) line(number int) string {
	if s == nil || number < 1 || number > len(s.lines) {
		return ""
	}
	return s.lines[number-1]
}

// Error gives the message in up to three lines: file:line:column: path: problem, the line of the
// source, and a caret under the offending text.
func (e *Error) Error() string {
	var b strings.Builder
	switch {
	case e.Pos.Line == 0:
		b.WriteString("plan: ")
	case e.Pos.File == setFile:
		b.WriteString(setFile + " " + Printable(e.Line, lineWidth) + ": ")
	default:
		fmt.Fprintf(&b, "%s:%d:%d: ", Printable(e.Pos.File, 0), e.Pos.Line, e.Pos.Column)
	}
	if e.Path != "" {
		b.WriteString(Printable(e.Path, 3*QuoteWidth) + ": ")
	}
	b.WriteString(e.Problem)
	if strings.TrimSpace(e.Line) != "" {
		b.WriteString("\n" + e.excerpt())
	}
	return b.String()
}

// Unwrap returns the error that this one reports the place of, or nil.
func (e *Error) Unwrap() error { return e.cause }

// excerpt shows the source line, or the part of a long one around the column, with a caret.
func (e *Error) excerpt() string {
	runes := []rune(e.Line)
	at := min(max(e.Pos.Column-1, 0), len(runes))
	from := 0
	if len(runes) > lineWidth {
		from = max(0, min(at-lineWidth/2, len(runes)-lineWidth))
		runes = runes[from:min(len(runes), from+lineWidth)]
	}
	margin := fmt.Sprintf("%5d | ", e.Pos.Line)
	if e.Pos.File == setFile {
		margin = "      | "
	}
	return margin + Printable(string(runes), 0) + "\n      | " + strings.Repeat(" ", at-from) + "^"
}

// Printable replaces what could disturb a terminal by a dot, one for one, and cuts the text at
// width characters (0: never).
func Printable(s string, width int) string {
	count := 0
	var b strings.Builder
	for _, r := range s {
		if width > 0 && count == width {
			return b.String() + "…"
		}
		switch {
		case r == '\t':
			b.WriteByte(' ')
		case r == utf8.RuneError || !unicode.IsPrint(r):
			b.WriteRune('·')
		default:
			b.WriteRune(r)
		}
		count++
	}
	return b.String()
}

// Quote shows an offending text in double quotes, cut if it is long.
func Quote(s string) string {
	if runes := []rune(s); len(runes) > QuoteWidth {
		s = string(runes[:QuoteWidth]) + "…"
	}
	return strconv.Quote(s)
}

// Error lists up to ten errors, one after the other, and counts the rest.
func (es Errors) Error() string {
	var b strings.Builder
	for i, e := range es {
		if i == MaxErrors {
			fmt.Fprintf(&b, "\nand %d more", len(es)-MaxErrors)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.Error())
	}
	return b.String()
}

// Unwrap gives the single errors, for errors.Is and errors.As.
func (es Errors) Unwrap() []error {
	list := make([]error, len(es))
	for i, e := range es {
		list[i] = e
	}
	return list
}

// Join makes one error of what was collected: nil, the only one, or all in the order of the file.
func Join(es Errors) error {
	switch len(es) {
	case 0:
		return nil
	case 1:
		return es[0]
	}
	sort.SliceStable(es, func(i, j int) bool {
		a, b := es[i].Pos, es[j].Pos
		if a.File != b.File || a.Line != b.Line {
			return a.File == b.File && a.Line < b.Line
		}
		return a.Column < b.Column
	})
	return es
}

// Flatten finds the plan's errors in err; one that has no place is given n's.
func Flatten(n *Node, err error) Errors {
	var many Errors
	var one *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &many):
		return many
	}
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range list.Unwrap() {
			many = append(many, Flatten(n, e)...)
		}
		return many
	}
	if errors.As(err, &one) {
		return Errors{one}
	}
	return Errors{Errorf(n, "%w", err)}
}

// Fold returns a word in lower case, without dashes, underscores, dots and blanks: two spellings of a word
// fold alike.
func Fold(word string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_ .", r) {
			return -1
		}
		return r
	}, strings.ToLower(word))
}

// nearest returns the known word that folds like word, else the one with the smallest edit distance, or ""
// if each distance is too large for a typing error.
func nearest(word string, known []string) string {
	folded := Fold(word)
	if i := slices.IndexFunc(known, func(k string) bool { return Fold(k) == folded }); i >= 0 && folded != "" {
		return known[i]
	}
	best, distance := "", 1+max(1, len([]rune(word))/3)
	for _, k := range known {
		if d := editDistance(word, k); d < distance {
			best, distance = k, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions, replacements and swaps of neighbours that make b
// of a (the optimal string alignment of Damerau 1964). Words longer than any key are not compared:
// their distance is their length.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > QuoteWidth || len(y) > QuoteWidth {
		return max(len(x), len(y))
	}
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			d := rows[i-1][j-1]
			if x[i-1] != y[j-1] {
				d++
			}
			d = min(d, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(x)][len(y)]
}

// meant maps names of other programs, folded, to the keys and words of plans. Names of kinds are in the
// catalog.
var meant = map[string]string{
	"bandwidth": "rate", "latency": "delay", "lr": "rate", "learningrate": "rate", "wd": "weight-decay",
	"l2": "weight-decay", "batchsize": "batch", "minibatch": "batch", "path": "file", "filename": "file",
	"dataset": "data", "units": "outputs", "filters": "channels", "kernelsize": "kernel",
	"target": "label", "delimiter": "separator", "sep": "separator",
}

// Suggestion completes a message about an unknown word: the likely one, if any, and all that are
// accepted.
func Suggestion(word string, accepted []string) string { return Suggest(word, "accepted", accepted) }

// Suggest is Suggestion with another word for accepted.
func Suggest(word, what string, known []string) string {
	return likely(word, known) + list(what, known)
}

// likely returns the hint at the known word that is probably meant; empty if none is.
func likely(word string, known []string) string {
	near := meant[Fold(word)]
	if !slices.Contains(known, near) {
		near = nearest(word, known)
	}
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

// list returns the known words in parentheses, the first 30 if there are more.
func list(what string, known []string) string {
	const most = 30
	if len(known) > most {
		return fmt.Sprintf(" (%s: %s and %d more)", what, strings.Join(known[:most], ", "), len(known)-most)
	}
	if len(known) == 0 {
		return fmt.Sprintf(" (%s: none)", what)
	}
	return fmt.Sprintf(" (%s: %s)", what, strings.Join(known, ", "))
}

// UnknownKey makes the error about a field f of the map n that is not among the known keys.
func UnknownKey(n *Node, f Field, known []string) *Error {
	return KeyErrorf(n, f, "unknown key %s", Quote(f.Key)).suggest(f.Key, known)
}

// UnknownWord makes the error about a scalar n that is none of the known words, for a what such as
// "model" or "kind".
func UnknownWord(n *Node, what string, known []string) *Error {
	if n.Kind != Scalar {
		return Errorf(n, "found %s where a %s is expected (accepted: %s)", Found(n), what, strings.Join(known, ", "))
	}
	return Errorf(n, "unknown %s %s", what, Quote(n.Text)).suggest(n.Text, known)
}

// suggest completes an error about an unknown word.
func (e *Error) suggest(word string, known []string) *Error {
	e.hint, e.accepted = likely(word, known), list("accepted", known)
	e.unknown = e.Problem
	e.Problem += e.hint + e.accepted
	return e
}

// Lacks reports whether the error is that the field's key is unknown, without a hint.
func (e *Error) Lacks(f Field) bool {
	return e.unknown == "unknown key "+Quote(f.Key) && e.hint == "" && e.Path == f.Value.Path()
}

// Hint returns an error about an unknown word with another hint in front of the accepted ones.
func (e *Error) Hint(hint string) *Error {
	if e.unknown == "" {
		return e
	}
	hinted := *e
	hinted.hint, hinted.Problem = hint, e.unknown+hint+e.accepted
	return &hinted
}

// Found says what stands at n, for messages about a wrong type.
func Found(n *Node) string {
	switch {
	case n.Kind == Scalar && n.Quoted:
		return "the text " + Quote(n.Text)
	case n.Kind == Scalar:
		return Quote(n.Text)
	default:
		return n.Kind.String()
	}
}
