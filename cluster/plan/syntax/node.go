package syntax

import (
	"slices"
	"strconv"
	"strings"
)

// Kind says what a [Node] is.
type Kind uint8

// The kinds of nodes. The zero Kind is Null, a key without a value.
const (
	Null Kind = iota
	Scalar
	List
	Map
)

// String names the kind as error messages do: "nothing", "a value", "a list", "a map".
func (k Kind) String() string {
	switch k {
	case Scalar:
		return "a value"
	case List:
		return "a list"
	case Map:
		return "a map"
	default:
		return "nothing"
	}
}

// Pos is a place in a plan. Line and Column count from 1, columns in characters; a zero Line means
// that the node was made by a program. File is "--set" for values from the command line.
type Pos struct {
	File         string
	Line, Column int
}

// Node is a piece of a plan's syntax: a scalar, a list, or a map in the order of the file.
//
// A node knows the node it stands in, which is how errors can name its path. Change a tree with
// [Node.Set] or build it with [NewScalar], [NewList] and [NewMap], and this stays true.
type Node struct {
	Kind Kind
	// Text is a scalar's text, with quotes and escapes resolved. It is empty for the other kinds.
	Text string
	// Quoted says that the scalar stood in quotes (or in a block), so that 5 in it is text and no
	// number.
	Quoted bool
	Items  []*Node // of a List
	Fields []Field // of a Map
	Pos    Pos

	parent *Node
	key    string // under which parent, a Map, holds this node
	index  int    // at which parent, a List, holds this node
	source *source
}

// Field is one entry of a map. Pos is the place of the key.
type Field struct {
	Key   string
	Pos   Pos
	Value *Node
}

// Entry is a field of a map that a program makes.
func Entry(key string, value *Node) Field { return Field{Key: key, Value: value} }

// source is the text that nodes were parsed from, kept for the line that an error shows.
type source struct {
	file  string
	lines []string
}

// NewScalar makes a plain scalar, read again as what it looks like: NewScalar("5") is a number.
func NewScalar(text string) *Node { return &Node{Kind: Scalar, Text: text} }

// NewText makes a scalar that is read again as text, quoted where text could be taken for a number,
// true, false or null.
func NewText(text string) *Node { return &Node{Kind: Scalar, Text: text, Quoted: Ambiguous(text)} }

// NewList makes a list of items, which then belong to it.
func NewList(items ...*Node) *Node {
	n := &Node{Kind: List, Items: items}
	n.adopt()
	return n
}

// NewMap makes a map of fields, whose values then belong to it. Keys must differ.
func NewMap(fields ...Field) *Node {
	n := &Node{Kind: Map, Fields: fields}
	n.adopt()
	return n
}

// adopt tells the direct children of n where they stand.
func (n *Node) adopt() {
	for i, item := range n.Items {
		item.parent, item.index, item.key = n, i, ""
	}
	for _, f := range n.Fields {
		f.Value.parent, f.Value.key, f.Value.index = n, f.Key, 0
	}
}

// Get returns the value of a map's key; false if n is no map or has no such key.
func (n *Node) Get(key string) (*Node, bool) {
	if n == nil {
		return nil, false
	}
	for _, f := range n.Fields {
		if f.Key == key {
			return f.Value, true
		}
	}
	return nil, false
}

// At returns the value of a map's key, or n itself where there is none: the best place to point at
// for an error about key.
func (n *Node) At(key string) *Node {
	if v, ok := n.Get(key); ok {
		return v
	}
	return n
}

// Without returns a map like n that lacks the given keys. The values are shared with n; errors
// about them read as before.
func (n *Node) Without(keys ...string) *Node {
	c := *n
	c.Fields = nil
	for _, f := range n.Fields {
		if !slices.Contains(keys, f.Key) {
			c.Fields = append(c.Fields, f)
		}
	}
	return &c
}

// Only returns a map like n that has the given keys alone, as far as n has them.
func (n *Node) Only(keys ...string) *Node {
	c := *n
	c.Fields = nil
	for _, f := range n.Fields {
		if slices.Contains(keys, f.Key) {
			c.Fields = append(c.Fields, f)
		}
	}
	return &c
}

// As returns a map with n, as it is, under a key. The map has n's place; errors about n read as
// before.
func (n *Node) As(key string) *Node {
	m := *n
	m.Kind, m.Text, m.Quoted, m.Items = Map, "", false, nil
	m.Fields = []Field{{Key: key, Pos: n.Pos, Value: n}}
	return &m
}

// KeyNode is the key of a field of the map n as a scalar, for errors about the key.
func (n *Node) KeyNode(f Field) *Node {
	return &Node{Kind: Scalar, Text: f.Key, Pos: f.Pos, source: f.Value.source, parent: n, key: f.Key}
}

// Clone returns a deep copy of n. The copy still knows which path it was taken from.
func (n *Node) Clone() *Node {
	if n == nil {
		return nil
	}
	c := *n
	if n.Items != nil {
		c.Items = make([]*Node, len(n.Items))
	}
	for i, item := range n.Items {
		c.Items[i] = item.Clone()
	}
	if n.Fields != nil {
		c.Fields = make([]Field, len(n.Fields))
	}
	for i, f := range n.Fields {
		c.Fields[i] = Field{Key: f.Key, Pos: f.Pos, Value: f.Value.Clone()}
	}
	c.adopt()
	return &c
}

// Placed returns a deep copy of n in the place of another node, which stands for it in a file:
// errors about any part of n point there.
func (n *Node) Placed(at *Node) *Node {
	c := n.Clone()
	c.place(at)
	c.parent, c.key, c.index = at.parent, at.key, at.index
	return c
}

func (n *Node) place(at *Node) {
	n.Pos, n.source = at.Pos, at.source
	for _, item := range n.Items {
		item.place(at)
	}
	for i := range n.Fields {
		n.Fields[i].Pos = at.Pos
		n.Fields[i].Value.place(at)
	}
}

// Equal reports whether n and m mean the same: kinds, texts, keys and their order, but not
// positions, and not quotes around a text that could be nothing else.
func (n *Node) Equal(m *Node) bool {
	if n == nil || m == nil {
		return n == m
	}
	if n.Kind != m.Kind || n.Text != m.Text || len(n.Items) != len(m.Items) || len(n.Fields) != len(m.Fields) {
		return false
	}
	if n.Kind == Scalar && n.Quoted != m.Quoted && Ambiguous(n.Text) {
		return false
	}
	for i := range n.Items {
		if !n.Items[i].Equal(m.Items[i]) {
			return false
		}
	}
	for i := range n.Fields {
		if n.Fields[i].Key != m.Fields[i].Key || !n.Fields[i].Value.Equal(m.Fields[i].Value) {
			return false
		}
	}
	return true
}

// Path is where n stands in its plan, such as nodes[1].compute.step; empty for the top.
func (n *Node) Path() string {
	var steps []string
	for m := n; m != nil && m.parent != nil; m = m.parent {
		if m.parent.Kind == List {
			steps = append(steps, "["+strconv.Itoa(m.index)+"]")
		} else {
			steps = append(steps, PathPiece(m.key))
		}
	}
	var b strings.Builder
	for i := len(steps) - 1; i >= 0; i-- {
		if b.Len() > 0 && steps[i][0] != '[' {
			b.WriteByte('.')
		}
		b.WriteString(steps[i])
	}
	return b.String()
}

// PathPiece writes a key so that a path through it can be read again.
func PathPiece(key string) string {
	if key == "" || strings.ContainsAny(key, ".[]\"") {
		return strconv.Quote(key)
	}
	return key
}

// Size counts the nodes of a tree.
func (n *Node) Size() int {
	total := 1
	for _, item := range n.Items {
		total += item.Size()
	}
	for _, f := range n.Fields {
		total += f.Value.Size()
	}
	return total
}

// depth counts the levels of a tree: 1 for a scalar.
func (n *Node) depth() int {
	deepest := 0
	for _, item := range n.Items {
		deepest = max(deepest, item.depth())
	}
	for _, f := range n.Fields {
		deepest = max(deepest, f.Value.depth())
	}
	return 1 + deepest
}
