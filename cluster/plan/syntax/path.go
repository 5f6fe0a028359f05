package syntax

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	setFile  = "--set"
	maxSteps = 2 * MaxDepth // pieces of one path
)

// Step is one piece of a path: a key, or an index in brackets.
type Step struct {
	Text    string
	Bracket bool
}

// SplitPath takes a path apart: pieces between dots, in double quotes where they hold a dot, and
// indices in brackets.
func SplitPath(path string) ([]Step, error) {
	var steps []Step
	rest := path
	for first := true; rest != "" || first; first = false {
		var s Step
		var err error
		switch {
		case strings.HasPrefix(rest, "[") && !first:
			s, rest, err = bracketStep(rest)
		default:
			if !first {
				if rest[0] != '.' {
					return nil, fmt.Errorf("path %s: %s follows where a dot is expected", Quote(path), Quote(rest))
				}
				rest = rest[1:]
			}
			s, rest, err = wordStep(rest)
		}
		if err != nil {
			return nil, fmt.Errorf("path %s: %w", Quote(path), err)
		}
		if steps = append(steps, s); len(steps) > maxSteps {
			return nil, fmt.Errorf("path %s has more than %d pieces", Quote(path), maxSteps)
		}
	}
	return steps, nil
}

func bracketStep(rest string) (Step, string, error) {
	end := strings.IndexByte(rest, ']')
	if end < 0 {
		return Step{}, "", fmt.Errorf("the bracket of %s is not closed", Quote(rest))
	}
	inside := rest[1:end]
	if !isIndex(inside) {
		return Step{}, "", fmt.Errorf("%s is no index; write a whole number in brackets, such as [0]", Quote(inside))
	}
	return Step{inside, true}, rest[end+1:], nil
}

func wordStep(rest string) (Step, string, error) {
	if strings.HasPrefix(rest, `"`) {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return Step{}, "", fmt.Errorf("the quote of %s is not closed", Quote(rest))
		}
		text, err := strconv.Unquote(quoted)
		if err != nil || text == "" {
			return Step{}, "", fmt.Errorf("%s is no key", quoted)
		}
		return Step{text, false}, rest[len(quoted):], nil
	}
	end := strings.IndexAny(rest, ".[")
	if end < 0 {
		end = len(rest)
	}
	if end == 0 {
		return Step{}, "",
			fmt.Errorf("a piece is empty; write keys with dots between them, such as nodes.fast.compute.step")
	}
	return Step{rest[:end], false}, rest[end:], nil
}

func isIndex(s string) bool {
	return s != "" && len(s) <= 6 && strings.Trim(s, "0123456789") == ""
}

// Lookup finds the node at a path of keys with dots between them, such as data.split.kind. An item
// of a list is named by its `name:` (nodes.fast.compute.step), by its place from 0 (nodes.0 or
// nodes[0]), or, for a link, by its ends: server-slow for {between: [server, slow]}, server->slow
// for {from: server, to: slow}. A piece with a dot in it stands in double quotes.
func (n *Node) Lookup(path string) (*Node, bool) {
	steps, err := SplitPath(path)
	if err != nil {
		return nil, false
	}
	for _, s := range steps {
		child, err := n.Child(s)
		if err != nil || child == nil {
			return nil, false
		}
		n = child
	}
	return n, true
}

// Set puts value, which from then on belongs to n's tree, at the path (see [Node.Lookup]). Keys
// that are missing on the way are made; items of lists are not. The error names the piece of the
// path that leads nowhere and what would.
func (n *Node) Set(path string, value *Node) error {
	steps, err := SplitPath(path)
	if err != nil {
		return Errorf(value, "%w", err)
	}
	at := &Node{Pos: value.Pos, source: value.source}
	if at.Pos.File == setFile {
		at.Pos.Line, at.Pos.Column = 1, 1
	}
	return n.SetAt(steps, value, at)
}

// SetAt is Set; at is the place, for errors and new keys, where the path itself was written.
func (n *Node) SetAt(steps []Step, value, at *Node) error {
	if len(steps)+value.depth() > MaxDepth {
		return Errorf(at, "this path and its value together are deeper than %d levels", MaxDepth)
	}
	for i, s := range steps {
		if n.Kind == Null {
			n.Kind, n.Text = Map, ""
		}
		child, err := n.Child(s)
		if err != nil {
			return Errorf(at, "%w", err)
		}
		if i == len(steps)-1 {
			n.put(s, child, value, at)
			return nil
		}
		if child == nil {
			child = &Node{Kind: Map, Pos: at.Pos, source: at.source}
			n.put(s, nil, child, at)
		}
		n = child
	}
	return nil
}

// put makes value the child of n at s, in place of old.
func (n *Node) put(s Step, old, value, at *Node) {
	value.parent, value.key, value.index = n, s.Text, 0
	if n.Kind == List {
		value.key, value.index = "", old.index
		n.Items[old.index] = value
		return
	}
	for i := range n.Fields {
		if n.Fields[i].Key == s.Text {
			n.Fields[i].Value = value
			return
		}
	}
	n.Fields = append(n.Fields, Field{Key: s.Text, Pos: at.Pos, Value: value})
}

// Child finds the child that a piece of a path names: nil if a map could have it but does not.
func (n *Node) Child(s Step) (*Node, error) {
	where := n.Path()
	if where == "" {
		where = "the plan"
	}
	switch n.Kind {
	case Map:
		if s.Bracket {
			return nil, fmt.Errorf("%s is a map, it has keys and no [%s]", where, s.Text)
		}
		child, _ := n.Get(s.Text)
		return child, nil
	case List:
		return n.item(s, where)
	}
	return nil, fmt.Errorf("%s is %s (%s), there is nothing at %s in it", where, n.Kind,
		Printable(n.Flow(), QuoteWidth), Quote(s.Text))
}

func (n *Node) item(s Step, where string) (*Node, error) {
	var found []*Node
	var known []string
	for _, item := range n.Items {
		for _, name := range ItemNames(item) {
			if !s.Bracket && name == s.Text {
				found = append(found, item)
				break
			}
		}
		known = append(known, ItemNames(item)...)
	}
	if len(found) == 1 {
		return found[0], nil
	}
	if len(found) > 1 {
		return nil, fmt.Errorf("%s has %d items named %s; name one by its place: %s[%d]",
			where, len(found), s.Text, where, found[0].index)
	}
	if isIndex(s.Text) {
		if i, _ := strconv.Atoi(s.Text); i < len(n.Items) {
			return n.Items[i], nil
		}
		return nil, fmt.Errorf("%s has %d items, counted from 0; there is no %s", where, len(n.Items), s.Text)
	}
	return nil, fmt.Errorf("%s has no item named %s%s", where, Quote(s.Text), Suggest(s.Text, "known", known))
}

// ItemNames lists what an item of a list answers to: its name, or a link's ends.
func ItemNames(item *Node) []string {
	if name, ok := item.Get("name"); ok && name.Kind == Scalar {
		return []string{name.Text}
	}
	if ends, ok := item.Get("between"); ok && len(ends.Items) == 2 {
		a, b := ends.Items[0].Text, ends.Items[1].Text
		if a == b {
			return []string{a + "-" + b}
		}
		return []string{a + "-" + b, b + "-" + a}
	}
	from, to := item.At("from"), item.At("to")
	if from != item && to != item {
		return []string{from.Text + "->" + to.Text}
	}
	return nil
}

// ParseAssignment takes a key=value from the command line apart: the path of keys and the value,
// which is YAML in flow style, such as 5ms, [93, 21, 5] or {kind: sgd, rate: 0.1}. Positions of the
// value, and errors, say --set.
func ParseAssignment(s string) (path string, value *Node, err error) {
	at := &Node{Pos: Pos{setFile, 1, 1}, source: &source{setFile, []string{firstOf(s)}}}
	i := strings.IndexByte(s, '=')
	if quoted, e := strconv.QuotedPrefix(s); e == nil {
		i = len(quoted) + strings.IndexByte(s[len(quoted):], '=')
	}
	if i < 0 || !strings.Contains(s, "=") {
		return "", nil, Errorf(at, "there is no = in it; write key=value, such as nodes.fast.compute.step=5ms")
	}
	path = strings.TrimSpace(s[:i])
	if _, err := SplitPath(path); err != nil {
		return "", nil, Errorf(at, "%w", err)
	}
	value, err = parseValue(setFile, []byte(s), i+1)
	if err != nil {
		return "", nil, err
	}
	if value.Kind == Null && strings.TrimSpace(s[i+1:]) == "" {
		return "", nil, Errorf(at, "there is no value after the =; write key=value, or key=null for none")
	}
	return path, value, nil
}

func firstOf(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
