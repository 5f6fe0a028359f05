package syntax

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
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
	tokens := lexer.Tokenize(text[indent:])
	if e := r.checkTokens(tokens); e != nil {
		return nil, e
	}
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, r.syntaxError(err)
	}
	return r.tree(f)
}

// reader turns the library's syntax into nodes.
type reader struct {
	file   string
	indent int
	source *source
	nodes  int
	errs   Errors
}

func (r *reader) errorf(line, column int, format string, args ...any) *Error {
	n := &Node{Pos: Pos{r.file, line, column}, source: r.source}
	return Errorf(n, format, args...)
}

func (r *reader) tokenErrorf(t *token.Token, format string, args ...any) *Error {
	p := r.pos(t)
	return r.errorf(p.Line, p.Column, format, args...)
}

// pos is where a token stands; the library counts a few multi-line tokens from column 0.
func (r *reader) pos(t *token.Token) Pos {
	if t == nil || t.Position == nil {
		return Pos{r.file, 1, 1}
	}
	p := Pos{r.file, max(t.Position.Line, 1), max(t.Position.Column, 1)}
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
			case c < ' ' && c != '\t', c >= 0x7f && c < 0xa0, c == '\uFEFF', c == '\u2028', c == '\u2029':
				return r.errorf(i+1, column,
					"control character U+%04X is not accepted; write it as an escape in double quotes", c)
			}
		}
	}
	return nil
}

// refused are the parts of YAML that a plan does without.
var refused = map[token.Type]string{
	token.AnchorType:    "anchors (&name) are not accepted; write the value out where it is needed",
	token.AliasType:     "aliases (*name) are not accepted; write the value out where it is needed",
	token.TagType:       "tags (!name) are not accepted; a key's meaning gives its type",
	token.MergeKeyType:  "merge keys (<<) are not accepted; write the keys out",
	token.DirectiveType: "directives (%name) are not accepted",
	token.MappingKeyType: "explicit keys (? key) are not accepted; write key: value. " +
		"Put a text that begins with a question mark in quotes",
}

// checkTokens refuses, before the library builds anything of it, what is not accepted or too deep
// or too large.
func (r *reader) checkTokens(tokens token.Tokens) *Error {
	depth := nesting{}
	started := false
	for i, t := range tokens {
		if t.Type == token.CommentType {
			continue
		}
		if t.Type == token.InvalidType {
			return r.syntaxMessage(r.pos(t), t.Error)
		}
		if message, bad := refused[t.Type]; bad {
			return r.tokenErrorf(t, "%s", message)
		}
		if (t.Type == token.DocumentHeaderType || t.Type == token.DocumentEndType) && started {
			if t.Type == token.DocumentEndType && i == len(tokens)-1 {
				continue
			}
			return r.tokenErrorf(t, "a second document begins here; a plan is one document")
		}
		started = true
		if e := depth.step(r, t); e != nil {
			return e
		}
	}
	if depth.tokens > 4*MaxNodes {
		return r.errorf(1, 1, "the plan has more than %d values", MaxNodes)
	}
	return nil
}

// nesting follows how deep the tokens of a text stand in each other, generously: its purpose is to
// keep the library's recursion and the paths it builds small. The exact depth is checked on the
// tree.
type nesting struct {
	open   []opened
	tokens int
	bytes  int // of all paths that the library will build
}

type opened struct {
	column int  // of a block's key or dash
	flow   byte // '[' or '{', ':' for a pair inside these, 0 in a block
	dash   bool
	path   int // bytes of the path down to here
	keys   int // of the same map so far
}

const (
	maxPathBytes = 256 << 20
	tooManyKeys  = "this map has more than %d keys"
)

func (d *nesting) step(r *reader, t *token.Token) *Error {
	d.tokens++
	switch t.Type {
	case token.SequenceStartType:
		d.push(opened{flow: '['}, 8)
	case token.MappingStartType:
		d.push(opened{flow: '{'}, 8)
	case token.SequenceEndType, token.MappingEndType:
		d.closePair()
		if len(d.open) > 0 && d.open[len(d.open)-1].flow != 0 {
			d.open = d.open[:len(d.open)-1]
		}
	case token.CollectEntryType:
		d.closePair()
		d.bytes += d.path()
		if len(d.open) > 0 && d.open[len(d.open)-1].flow == '{' {
			d.open[len(d.open)-1].keys++
		}
	case token.SequenceEntryType:
		d.block(opened{column: t.Position.Column, dash: true}, 8)
	case token.MappingValueType:
		key := t.Prev
		if key == nil {
			break
		}
		if len(key.Value) > MaxKey {
			return r.tokenErrorf(key, "this key has %d bytes; at most %d are accepted", len(key.Value), MaxKey)
		}
		d.block(opened{column: key.Position.Column}, len(key.Value)+1)
	}
	if len(d.open) > 4*MaxDepth {
		return r.tokenErrorf(t, "maps and lists are nested too deeply here; at most %d levels are accepted", MaxDepth)
	}
	if len(d.open) > 0 && d.open[len(d.open)-1].keys >= MaxKeys {
		return r.tokenErrorf(t, tooManyKeys, MaxKeys)
	}
	if d.bytes > maxPathBytes {
		return r.tokenErrorf(t,
			"too many values stand under long keys up to here; make the keys shorter or the plan smaller")
	}
	return nil
}

func (d *nesting) path() int {
	if len(d.open) == 0 {
		return 0
	}
	return d.open[len(d.open)-1].path
}

func (d *nesting) push(o opened, path int) {
	o.path = d.path() + path
	d.bytes += o.path
	d.open = append(d.open, o)
}

// closePair leaves the key: value pairs of the innermost bracket.
func (d *nesting) closePair() {
	for len(d.open) > 0 && d.open[len(d.open)-1].flow == ':' {
		d.open = d.open[:len(d.open)-1]
	}
}

// block enters a key or a dash: as a pair if a bracket is open, else leaving the blocks that its
// column ends.
func (d *nesting) block(o opened, path int) {
	for i := len(d.open) - 1; i >= 0; i-- {
		top := d.open[i]
		if top.flow != 0 {
			o.flow = ':'
			break
		}
		if top.column == o.column && !top.dash && !o.dash {
			o.keys = top.keys + 1
		}
		if top.column < o.column || top.column == o.column && o.dash && !top.dash {
			break
		}
		d.open = d.open[:i]
	}
	d.push(o, path)
}

// syntaxError gives the library's complaint our form.
func (r *reader) syntaxError(err error) *Error {
	var y yaml.Error
	if errors.As(err, &y) && y.GetToken() != nil {
		return r.syntaxMessage(r.pos(y.GetToken()), y.GetMessage())
	}
	return r.errorf(1, 1, "this is not YAML: %s", firstLine(err.Error()))
}

func (r *reader) syntaxMessage(p Pos, message string) *Error {
	for _, line := range []int{p.Line, p.Line + 1} {
		text := r.source.line(line)
		if blank := text[:len(text)-len(strings.TrimLeft(text, " \t"))]; strings.Contains(blank, "\t") {
			column := strings.Index(blank, "\t") + 1
			return r.errorf(line, column, "a tab indents this line; YAML indents with spaces")
		}
	}
	return r.errorf(p.Line, p.Column, "this is not YAML: %s", firstLine(message))
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return Printable(s, 2*QuoteWidth)
}

func (r *reader) tree(f *ast.File) (*Node, error) {
	top := &Node{Pos: Pos{r.file, 1, 1 + r.indent}, source: r.source}
	if len(f.Docs) > 1 {
		return nil, r.errorf(1, 1, "the text has %d documents; a plan is one document", len(f.Docs))
	}
	if len(f.Docs) == 1 && f.Docs[0].Body != nil {
		top = r.node(f.Docs[0].Body, 1)
	}
	if err := Join(r.errs); err != nil {
		return nil, err
	}
	return top, nil
}

// node converts one value and all below it. It returns nil once there are too many errors to go on.
func (r *reader) node(y ast.Node, depth int) *Node {
	n := &Node{Pos: r.pos(y.GetToken()), source: r.source}
	if r.nodes++; r.nodes > MaxNodes {
		r.fatal(n, fmt.Sprintf("the plan has more than %d values up to here", MaxNodes))
		return n
	}
	switch y := y.(type) {
	case *ast.MappingNode:
		r.mapping(n, y, depth)
	case *ast.MappingValueNode:
		r.mapping(n, &ast.MappingNode{Values: []*ast.MappingValueNode{y}}, depth)
	case *ast.SequenceNode:
		n.Kind = List
		if r.deep(n, depth) {
			break
		}
		for _, v := range y.Values {
			n.Items = append(n.Items, r.node(v, depth+1))
		}
	case *ast.NullNode:
		n.Kind = Null
	default:
		r.scalar(n, y)
	}
	n.adopt()
	return n
}

func (r *reader) scalar(n *Node, y ast.Node) {
	n.Kind = Scalar
	switch y := y.(type) {
	case *ast.StringNode:
		t := y.GetToken()
		n.Text, n.Quoted = y.Value, t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
		if !n.Quoted && n.Text != "" && strings.ContainsRune("]},", rune(n.Text[0])) {
			r.complain(Errorf(n, "%s closes nothing; put it in quotes if it is meant as text", n.Text[:1]))
		}
		if !n.Quoted && n.Text == "" {
			n.Kind = Null
		}
	case *ast.LiteralNode:
		n.Quoted = true
		if y.Value != nil {
			n.Text = y.Value.Value
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		n.Text = y.GetToken().Value
	default:
		r.complain(Errorf(n, "this kind of YAML (%s) is not accepted here", y.Type()))
	}
}

func (r *reader) mapping(n *Node, y *ast.MappingNode, depth int) {
	n.Kind = Map
	if !y.IsFlowStyle && len(y.Values) > 0 {
		n.Pos = r.pos(y.Values[0].Key.GetToken())
	}
	if r.deep(n, depth) {
		return
	}
	if len(y.Values) > MaxKeys {
		r.complain(Errorf(n, tooManyKeys, MaxKeys))
		return
	}
	first := make(map[string]Pos, len(y.Values))
	for _, v := range y.Values {
		f := Field{Pos: r.pos(v.Key.GetToken()), Value: r.node(v.Value, depth+1)}
		f.Value.parent = n
		key := &Node{Kind: Scalar, Pos: f.Pos, source: r.source, parent: n.parent, key: n.key, index: n.index}
		f.Key = r.keyText(key, v.Key)
		if before, twice := first[f.Key]; twice {
			r.complain(Errorf(key, "key %s is given twice; it stands already in line %d", Quote(f.Key), before.Line))
			continue
		}
		first[f.Key] = f.Pos
		n.Fields = append(n.Fields, f)
	}
}

func (r *reader) keyText(key *Node, y ast.MapKeyNode) string {
	text := ""
	switch y := y.(type) {
	case *ast.StringNode:
		text = y.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode, *ast.NullNode:
		text = y.GetToken().Value
	default:
		r.complain(Errorf(key, "this cannot be a key; a key is a word"))
		return fmt.Sprint(len(r.errs))
	}
	if text == "" || len(text) > MaxKey {
		r.complain(Errorf(key, "a key has 1 to %d bytes, this one has %d", MaxKey, len(text)))
	}
	return text
}

// deep reports, and complains, that n stands too deep to go on.
func (r *reader) deep(n *Node, depth int) bool {
	if depth > MaxDepth {
		r.fatal(n, fmt.Sprintf("maps and lists are nested too deeply here; at most %d levels are accepted", MaxDepth))
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
