package syntax

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Limits of a plan's text. Meeting one is an error that says so.
const (
	MaxBytes = 8 << 20 // of one file
	MaxDepth = 32      // of maps and lists in each other
	MaxNodes = 1 << 20 // values, lists and maps together
	MaxKeys  = 10_000  // of one map
	MaxKey   = 256     // bytes of one key
)

// Parse reads a plan's text, whose top must be a map. file is the name used in positions. Lines may
// end in LF or CRLF, and a byte order mark is skipped.
//
// The error is an [*Error] or [Errors]: text that is no YAML, or is more than a plan may be (see
// the limits), uses anchors, aliases, tags, merge keys, directives or several documents, has a key
// twice, or is not UTF-8.
func Parse(file string, src []byte) (*Node, error) {
	n, err := parseValue(file, src, 0)
	if err != nil {
		return nil, err
	}
	if n.Kind == Null {
		return nil, Errorf(n, "the plan is empty; it needs keys such as data, model, architecture, nodes and stop")
	}
	if n.Kind != Map {
		return nil, Errorf(n, "a plan is a map (key: value), but this one is %s", n.Kind)
	}
	return n, nil
}

// parseValue reads any one value; the first indent bytes of the source are not YAML and are stepped
// over.
func parseValue(file string, src []byte, indent int) (n *Node, err error) {
	r := &reader{file: file, source: &source{file: file}}
	if len(src) > MaxBytes {
		return nil, r.errorf(1, 1, "the text has %d bytes; at most %d (8 MiB) are read", len(src), MaxBytes)
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(src), "\uFEFF"), "\r\n", "\n")
	r.source.lines = strings.Split(text, "\n")
	if e := r.checkCharacters(); e != nil {
		return nil, e
	}
	indent = min(indent, len(text))
	r.indent = utf8.RuneCountInString(text[:indent])
	defer func() {
		if p := recover(); p != nil {
			n, err = nil, r.errorf(1, 1, "the YAML parser failed on this text (%v)", p)
		}
	}()
	if e := r.checkText(text[indent:]); e != nil {
		return nil, e
	}
	y, e := r.load(text[indent:])
	if e != nil {
		return nil, e
	}
	return r.tree(y)
}

// reader turns the library's syntax into nodes.
type reader struct {
	file      string
	indent    int
	source    *source
	questions bool // whether the text has a question mark at all, as every explicit key does
	nodes     int
	slab      []Node // made together: a plan has many
	kept      []rune // the characters of line keptLine
	keptLine  int
	errs      Errors
}

func (r *reader) errorf(line, column int, format string, args ...any) *Error {
	n := &Node{Pos: Pos{r.file, line, column}, source: r.source}
	return Errorf(n, format, args...)
}

// pos is a place that the library names.
func (r *reader) pos(line, column int) Pos {
	p := Pos{r.file, max(line, 1), max(column, 1)}
	if p.Line == 1 {
		p.Column += r.indent
	}
	return p
}

// checkCharacters refuses what may not stand in a YAML text at all.
func (r *reader) checkCharacters() *Error {
	for i, line := range r.source.lines {
		column := 0
		for at := 0; at < len(line); {
			c, size := utf8.DecodeRuneInString(line[at:])
			at += size
			column++
			switch {
			case c == utf8.RuneError && size == 1:
				return r.errorf(i+1, column, "byte 0x%02x is not UTF-8; a plan is UTF-8 text", line[at-1])
			case c == '\r':
				return r.errorf(i+1, column, "a carriage return stands alone; lines end in LF or CRLF")
			case c < ' ' && c != '\t', c >= 0x7f && c < 0xa0, c == '\uFEFF', c == '\u2028', c == '\u2029',
				c == '\uFFFE', c == '\uFFFF':
				return r.errorf(i+1, column,
					"control character U+%04X is not accepted; write it as an escape in double quotes", c)
			}
		}
	}
	return nil
}

// The parts of YAML that a plan does without.
var (
	errAnchor = errors.New("anchors (&name) are not accepted; write the value out where it is needed")
	errAlias  = errors.New("aliases (*name) are not accepted; write the value out where it is needed")
	errDeep   = fmt.Errorf("maps and lists are nested too deeply here; at most %d levels are accepted", MaxDepth)
)

const (
	refusedTag       = "tags (!name) are not accepted; a key's meaning gives its type"
	refusedMerge     = "merge keys (<<) are not accepted; write the keys out"
	refusedDirective = "directives (%%name) are not accepted"
	refusedKey       = "explicit keys (? key) are not accepted; write key: value. " +
		"Put a text that begins with a question mark in quotes"
	secondDocument = "a second document begins here; a plan is one document"
	tooManyKeys    = "this map has more than %d keys"
)

// limits makes the library stop at the first anchor, alias or level too many, before it builds
// anything of them.
type limits struct{}

var (
	_ yaml.AliasDataPlugin    = limits{}
	_ yaml.AliasDataContext   = limits{}
	_ yaml.LoaderLimitsPlugin = limits{}
)

// CheckDepth keeps the library's recursion small. Blocks and brackets count apart here. The tree is
// checked for the depth of both together, and for the exact place of a block too many.
func (limits) CheckDepth(depth int, at *yaml.DepthContext) error {
	if at.Kind == yaml.DepthKindFlow && depth > MaxDepth || depth > 4*MaxDepth {
		return errDeep
	}
	return nil
}

func (limits) CheckAlias(int, int) error { return nil }

func (limits) NewAliasDataContext(yaml.AliasDataServices) (yaml.AliasDataContext, error) {
	return limits{}, nil
}

func (limits) BeginDocument() error { return nil }

func (limits) EndDocument() error { return nil }

func (limits) DefineAnchor(string, *yaml.Node) error { return errAnchor }

func (limits) ResolveAlias(string) (*yaml.Node, bool, error) { return nil, false, errAlias }

// checkText refuses a directive, which can only stand before everything else, and a text with far
// more signs of values than its values can have. The exact number is checked on the tree.
func (r *reader) checkText(text string) *Error {
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "%") {
			p := r.pos(i+1, 1)
			return r.errorf(p.Line, p.Column, refusedDirective)
		}
		if s := strings.TrimLeft(line, " \t"); s != "" && s[0] != '#' {
			break
		}
	}
	signs := strings.Count(text, ",") // once more than below: {a,b} has two values for each
	for _, sign := range []string{",", ":", "[", "{", "- "} {
		signs += strings.Count(text, sign)
	}
	if signs > 4*MaxNodes {
		return r.errorf(1, 1, "the plan has more than %d values", MaxNodes)
	}
	r.questions = strings.Contains(text, "?")
	return nil
}

// load makes the library read the text's only document; nil if it has none.
func (r *reader) load(text string) (*yaml.Node, *Error) {
	l, err := yaml.NewLoader(strings.NewReader(text), yaml.WithPlugin(limits{}))
	if err != nil {
		return nil, r.errorf(1, 1, "the YAML parser failed on this text (%v)", err)
	}
	var first, second yaml.Node
	err = l.Load(&first)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil {
		err = l.Load(&second)
	}
	if err == nil {
		p := r.pos(second.Line, second.Column)
		return nil, r.errorf(p.Line, p.Column, secondDocument)
	}
	if !errors.Is(err, io.EOF) {
		return nil, r.syntaxError(err)
	}
	return first.Content[0], nil
}

// syntaxError gives the library's complaint our form.
func (r *reader) syntaxError(err error) *Error {
	var y *yaml.LoadError
	if !errors.As(err, &y) {
		return r.errorf(1, 1, "this is not YAML: %s", firstLine(err.Error()))
	}
	p, ended := r.inText(y.Mark)
	if from, end := r.inText(y.ContextMark); ended && !end && y.ContextMark.Line > 0 {
		p = from // what is not closed
	}
	switch y.Message {
	case errDeep.Error(), errAnchor.Error(), errAlias.Error():
		return r.errorf(p.Line, p.Column, "%s", y.Message)
	case "found undefined tag handle":
		return r.errorf(p.Line, p.Column, refusedTag)
	}
	return r.syntaxMessage(p, y.ContextMsg, y.Message)
}

// inText is a place that the library names; or, and true, the end of the last line that is not
// blank, if the place is behind all text.
func (r *reader) inText(m yaml.Mark) (p Pos, ended bool) {
	p = r.pos(m.Line, m.Column)
	last := len(r.source.lines)
	for last > 1 && strings.TrimSpace(r.source.line(last)) == "" {
		last--
	}
	length := utf8.RuneCountInString(strings.TrimRight(r.source.line(last), " \t"))
	if p.Line > last || p.Line == last && p.Column > length {
		return Pos{r.file, last, max(length, 1)}, true
	}
	return p, false
}

// runes is a line's characters, kept for the next question about the same line.
func (r *reader) runes(line int) []rune {
	if r.keptLine != line {
		r.kept, r.keptLine = []rune(r.source.line(line)), line
	}
	return r.kept
}

// runeAt is the character at a place, 0 outside of its line.
func (r *reader) runeAt(p Pos) rune {
	if line := r.runes(p.Line); p.Column >= 1 && p.Column <= len(line) {
		return line[p.Column-1]
	}
	return 0
}

// syntaxMessage tells what is wrong at p: as the library does, unless the character there says it
// better. context is what the library was reading.
func (r *reader) syntaxMessage(p Pos, context, message string) *Error {
	for _, line := range []int{p.Line, p.Line + 1} {
		text := r.source.line(line)
		if blank := text[:len(text)-len(strings.TrimLeft(text, " \t"))]; strings.Contains(blank, "\t") {
			column := strings.Index(blank, "\t") + 1
			return r.errorf(line, column, "a tab indents this line; YAML indents with spaces")
		}
	}
	c := r.runeAt(p)
	switch {
	case message == "did not find expected node content" && context == "while parsing a block node" &&
		strings.ContainsRune("]},", c):
		return r.errorf(p.Line, p.Column, "%c closes nothing; put it in quotes if it is meant as text", c)
	case message == "found character that cannot start any token" && strings.ContainsRune("@`%", c):
		message = fmt.Sprintf("%c cannot begin a text without quotes", c)
	case context != "":
		message += " " + context
	}
	return r.errorf(p.Line, p.Column, "this is not YAML: %s", firstLine(message))
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return Printable(s, 2*QuoteWidth)
}

func (r *reader) tree(y *yaml.Node) (*Node, error) {
	if y == nil {
		return &Node{Pos: Pos{r.file, 1, 1 + r.indent}, source: r.source}, nil
	}
	top := r.node(y, 1)
	if err := Join(r.errs); err != nil {
		return nil, err
	}
	return top, nil
}

// newNode takes a node of the slab.
func (r *reader) newNode(line, column int) *Node {
	const most = 256
	if len(r.slab) == 0 {
		r.slab = make([]Node, min(most, 8+r.nodes))
	}
	n := &r.slab[0]
	r.slab = r.slab[1:]
	n.Pos, n.source = r.pos(line, column), r.source
	return n
}

// node converts one value and all below it, as far as the limits let it.
func (r *reader) node(y *yaml.Node, depth int) *Node {
	n := r.newNode(y.Line, y.Column)
	if r.nodes++; r.nodes > MaxNodes {
		r.fatal(n, fmt.Sprintf("the plan has more than %d values up to here", MaxNodes))
		return n
	}
	r.checkTag(n, y)
	switch y.Kind {
	case yaml.MappingNode:
		r.mapping(n, y, depth)
	case yaml.SequenceNode:
		n.Kind = List
		if r.deep(n, depth) {
			break
		}
		n.Items = make([]*Node, 0, len(y.Content))
		for _, v := range y.Content {
			n.Items = append(n.Items, r.node(v, depth+1))
		}
	case yaml.ScalarNode:
		n.Quoted = y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
		if n.Quoted || !nullWord(y.Value) {
			n.Kind, n.Text = Scalar, y.Value
		}
	}
	n.adopt()
	return n
}

func (r *reader) checkTag(n *Node, y *yaml.Node) {
	if y.Style&yaml.TaggedStyle != 0 || y.Tag == "!" {
		r.complain(Errorf(n, refusedTag))
	}
}

func (r *reader) mapping(n *Node, y *yaml.Node, depth int) {
	n.Kind = Map
	if r.deep(n, depth) {
		return
	}
	size := len(y.Content) / 2
	if size > MaxKeys {
		r.complain(Errorf(n, tooManyKeys, MaxKeys))
		return
	}
	const few = 16 // are searched faster than a table is made
	var first map[string]int
	if size > few {
		first = make(map[string]int, size)
	}
	n.Fields = make([]Field, 0, size)
	for i := 0; i < len(y.Content); i += 2 {
		key := y.Content[i]
		f := Field{Pos: r.pos(key.Line, key.Column), Value: r.node(y.Content[i+1], depth+1)}
		f.Value.parent = n
		f.Key = r.keyText(n, y, key)
		before, twice := first[f.Key]
		for j := 0; size <= few && !twice && j < len(n.Fields); j++ {
			before, twice = j, n.Fields[j].Key == f.Key
		}
		if twice {
			r.complain(Errorf(r.keyNode(n, f.Pos), "key %s is given twice; it stands already in line %d",
				Quote(f.Key), n.Fields[before].Pos.Line))
			continue
		}
		if size > few {
			first[f.Key] = len(n.Fields)
		}
		n.Fields = append(n.Fields, f)
	}
}

// keyNode is a key of the map n, for errors about it, which have the path of the map.
func (r *reader) keyNode(n *Node, p Pos) *Node {
	return &Node{Kind: Scalar, Pos: p, source: r.source, parent: n.parent, key: n.key, index: n.index}
}

func (r *reader) keyText(n *Node, m, y *yaml.Node) string {
	at := r.pos(y.Line, y.Column)
	complain := func(format string, args ...any) {
		r.complain(Errorf(r.keyNode(n, at), format, args...))
	}
	if p, explicit := r.explicit(m, y); explicit {
		at = p
		complain(refusedKey)
		return y.Value
	}
	switch plain := y.Style == 0; {
	case y.Style&yaml.TaggedStyle != 0 || y.Tag == "!":
		complain(refusedTag)
	case y.Kind != yaml.ScalarNode:
		complain("this cannot be a key; a key is a word")
		return fmt.Sprint(len(r.errs))
	case plain && y.Value == "<<":
		complain(refusedMerge)
	case y.Value == "" || len(y.Value) > MaxKey:
		complain("a key has 1 to %d bytes, this one has %d", MaxKey, len(y.Value))
	}
	return y.Value
}

// explicit reports whether a question mark announces a key, and where. In a block, the mark and not
// the key stands in the map's column; in brackets, nothing else can stand before a key and end so.
func (r *reader) explicit(m, key *yaml.Node) (Pos, bool) {
	p := r.pos(key.Line, key.Column)
	if m.Style&yaml.FlowStyle == 0 {
		if key.Column == m.Column {
			return p, false
		}
		if mark := r.pos(key.Line, m.Column); r.runeAt(mark) == '?' {
			p = mark
		}
		return p, true
	}
	if !r.questions {
		return p, false
	}
	for p.Column--; ; p.Column-- {
		for p.Column == 0 && p.Line > 1 {
			p.Line--
			p.Column = len(r.runes(p.Line))
		}
		if c := r.runeAt(p); p.Column == 0 || c != ' ' && c != '\t' {
			comment := p.Line != key.Line && strings.Contains(r.source.line(p.Line), " #")
			return p, c == '?' && !comment
		}
	}
}

// deep reports, and complains, that n stands too deep to go on.
func (r *reader) deep(n *Node, depth int) bool {
	if depth > MaxDepth {
		r.fatal(n, errDeep.Error())
	}
	return depth > MaxDepth
}

// complain records an error unless there are many already.
func (r *reader) complain(e *Error) {
	if len(r.errs) < MaxErrors {
		r.errs = append(r.errs, e)
	}
}

// fatal records the complaint about a limit once.
func (r *reader) fatal(n *Node, message string) {
	if len(r.errs) == 0 || r.errs[len(r.errs)-1].Problem != message {
		r.complain(Errorf(n, "%s", message))
	}
}
