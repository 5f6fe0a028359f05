package topology

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/cluster/link/lines"
)

// MaxEdgeLine bounds a line of an edge list, in bytes with its end; MaxGraphEdges bounds its lines.
const MaxEdgeLine = 256

// EdgeList is a topology whose edges are named one by one.
type EdgeList struct {
	File  string // the file of the edges, for errors
	Named []NamedEdge
}

// NamedEdge joins two nodes, each given by its name or, where no node has this name, its position
// in the plan from 0.
type NamedEdge struct {
	A, B string
	Line int // in the file, from 1
}

// ReadEdges reads an edge list: one edge a line, two names or positions of nodes with a comma or
// blanks between them; blank lines and what follows a # are skipped,
//
//	# north
//	hub,edge1
//	hub,edge2
//
// Either direction means the same edge, and one that is named twice counts once. At most
// MaxGraphEdges lines of at most MaxEdgeLine bytes are read. Errors begin with name and line
// ("ring.csv:17: …") and quote what was found; an error of r is wrapped.
func ReadEdges(r io.Reader, name string) (EdgeList, error) {
	list := EdgeList{File: name}
	count, err := lines.Each(r, name, MaxEdgeLine, MaxGraphEdges, func(text []byte, line int) (err error) {
		list.Named, err = appendEdge(list.Named, string(text), line)
		return err
	})
	if err == nil && len(list.Named) == 0 {
		err = fmt.Errorf("%s:%d: no edges, expected lines such as \"hub,edge1\"", name, count+1)
	}
	if err != nil {
		return EdgeList{}, err
	}
	return list, nil
}

func appendEdge(edges []NamedEdge, text string, line int) ([]NamedEdge, error) {
	plain, _, _ := strings.Cut(text, "#")
	plain = strings.TrimSpace(plain)
	if plain == "" {
		return edges, nil
	}
	ends := strings.Fields(plain)
	if strings.Contains(plain, ",") {
		ends = strings.Split(plain, ",")
	}
	if len(ends) != 2 {
		return nil, fmt.Errorf("%q names %d nodes, expected the two ends of an edge such as \"hub,edge1\"", plain,
			len(ends))
	}
	e := NamedEdge{A: strings.TrimSpace(ends[0]), B: strings.TrimSpace(ends[1]), Line: line}
	if e.A == "" || e.B == "" {
		return nil, fmt.Errorf("%q lacks a node, expected the two ends of an edge such as \"hub,edge1\"", plain)
	}
	return append(edges, e), nil
}

// Validate reports the first edge whose ends are not two of the nodes.
func (t EdgeList) Validate(nodes []string) error {
	_, err := t.resolve(nodes)
	return err
}

// Edges returns the edges of the list.
func (t EdgeList) Edges(nodes []string, _ *rand.Rand) ([][2]int32, error) { return t.resolve(nodes) }

func (t EdgeList) resolve(nodes []string) ([][2]int32, error) {
	positions := make(map[string]int, len(nodes))
	for i, name := range nodes {
		positions[name] = i
	}
	edges := make([][2]int32, 0, len(t.Named))
	for _, e := range t.Named {
		var ends [2]int32
		for k, text := range [2]string{e.A, e.B} {
			i, found := positions[text]
			if !found {
				number, err := strconv.ParseUint(text, 10, 31)
				if err != nil || number >= uint64(len(nodes)) {
					return nil, fmt.Errorf("%s:%d: there is no node %q; accepted are names of nodes and positions "+
						"from 0 to %d", t.File, e.Line, text, len(nodes)-1)
				}
				i = int(number)
			}
			ends[k] = int32(i)
		}
		if ends[0] == ends[1] {
			return nil, fmt.Errorf("%s:%d: node %s is joined with itself; an edge joins two nodes", t.File, e.Line,
				nodes[ends[0]])
		}
		edges = append(edges, ends)
	}
	return edges, nil
}
