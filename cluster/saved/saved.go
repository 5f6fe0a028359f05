// Package saved uses the models that runs have saved, outside of their runs: it says which class
// they take samples for, and judges them by labelled ones. A model's file says all that this takes:
// the network, its parameters, how a sample becomes inputs, and the names of the classes. Samples
// come from files in the format of the data set that the model was trained on.
package saved

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/safetensors"
	"github.com/gradwire/gradwire/cluster/record/strict"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
)

// Model is a saved model.
type Model struct {
	path    string
	network nn.Model
	params  []float32
	loader  catalog.Loader
	set     string // that it was trained on
	classes []string
	layout  *datasets.Layout
	scaler  *datasets.Scaler // nil for none
	filler  *datasets.Filler // nil for none
	numeric []int            // inputs that are scaled, or filled, each by itself
	origin  []float64        // of the inputs; nil for none
	shape   []int            // of a sample; nil where that is not known
}

// Folder opens the record of the run of a folder DIR/runs/NNNN, and returns the run's number.
func Folder(dir string) (*record.Reader, int, error) {
	dir = filepath.Clean(dir)
	number, err := strconv.Atoi(filepath.Base(dir))
	if err != nil || number < 0 || filepath.Base(filepath.Dir(dir)) != "runs" {
		example := "results/first/runs/0003"
		if inside := filepath.Join(dir, "runs", "0000"); record.IsRun(inside) {
			example = inside
		}
		return nil, 0, fmt.Errorf("%s is no folder of a run, such as %s", dir, example)
	}
	reader, err := record.NewReader(filepath.Dir(filepath.Dir(dir)))
	return reader, number, err
}

// Open reads the model of the run of a folder DIR/runs/NNNN, or of a file such as
// model.safetensors. Where that has a model of each of several nodes, node says whose; else it is
// empty. A nil catalog stands for catalog.Default(). An InputError says what is wrong with the
// file.
func Open(c *catalog.Catalog, path, node string) (*Model, error) {
	file, err := open(path)
	if err != nil {
		return nil, refusal.Input(err)
	}
	defer func() { _ = file.Close() }() // read only: nothing is lost
	if c == nil {
		c = catalog.Default()
	}
	m := &Model{path: path}
	m.params, m.network, err = Read(file, func(metadata map[string]string) (nn.Model, error) {
		return m.network, m.describe(c, metadata)
	}, node)
	if err != nil {
		return nil, refusal.Input(fmt.Errorf("%s: %w", file.Name(), err))
	}
	return m, nil
}

func open(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return os.Open(path)
	}
	reader, number, err := Folder(path)
	if err != nil {
		return nil, err
	}
	return reader.Run(number).Model()
}

// Read reads the parameters of a model from a model's file, by whose metadata network says which
// network it is.
func Read(r io.Reader, network func(metadata map[string]string) (nn.Model, error), node string) ([]float32, nn.Model,
	error) {
	params, tensors, metadata, err := safetensors.Read(r)
	if err != nil {
		return nil, nil, fmt.Errorf("this is no model's file, which is in safetensors: %w", err)
	}
	m, err := network(metadata)
	if err != nil {
		return nil, nil, err
	}
	params, err = of(node, params, tensors, m)
	return params, m, err
}

// of returns the parameters of a network among those of a file, which are a node's if the file has
// those of several.
func of(node string, params []float32, tensors []safetensors.Tensor, m nn.Model) ([]float32, error) {
	wanted := m.Tensors()
	var own []safetensors.Tensor
	var nodes []string
	for _, t := range tensors {
		name, rest := "", t.Name
		if at := strings.LastIndex(t.Name, "/"); at >= 0 {
			name, rest = t.Name[:at], t.Name[at+1:]
		}
		if name != "" && !slices.Contains(nodes, name) {
			nodes = append(nodes, name)
		}
		if name == node {
			t.Name = rest
			own = append(own, t)
		}
	}
	switch {
	case node == "" && len(nodes) > 0:
		return nil, fmt.Errorf("the run's figures are of several models, those of the nodes %s; --node names "+
			"one of them, and evaluate: {of: average-model} judges a single one",
			strings.Join(nodes, ", "))
	case len(own) == 0:
		return nil, fmt.Errorf("there is no model of a node %q; accepted are %s", node,
			cmp.Or(strings.Join(nodes, ", "), "none: the file has a single model"))
	}
	first := own[0].Offset
	if !slices.EqualFunc(own, wanted, func(a safetensors.Tensor, b nn.Tensor) bool {
		return a.Name == b.Name && slices.Equal(a.Shape, b.Shape) && a.Offset-first == b.Offset
	}) {
		return nil, errors.New("the saved tensors are not those of the model that the file, or its record, says it is")
	}
	return params[first : first+m.Params()], nil
}

// describe takes in what the metadata of a model's file say.
func (m *Model) describe(c *catalog.Catalog, metadata map[string]string) error {
	var sections [2]*syntax.Node
	for i, key := range []string{"model", "data"} {
		if metadata[key] == "" {
			return fmt.Errorf("the file does not say which %s it was trained with: it was saved by an earlier "+
				"version, or by another program", key)
		}
		n, err := syntax.Parse("metadata "+key, []byte(metadata[key]))
		if err != nil {
			return err
		}
		sections[i] = n
	}
	var err error
	if m.network, m.loader, err = c.Saved(sections[0], sections[1]); err != nil {
		return err
	}
	m.set = sections[1].At("set").Text
	if err := decode(metadata, "classes", &m.classes); err != nil {
		return err
	}
	if len(m.classes) != m.network.Classes() {
		return fmt.Errorf("metadata classes: %d names; the model tells %d classes apart", len(m.classes),
			m.network.Classes())
	}
	if metadata["layout"] != "" {
		if err := decode(metadata, "layout", &m.layout); err != nil {
			return err
		}
	}
	if metadata["input_shape"] != "" {
		if err := decode(metadata, "input_shape", &m.shape); err != nil {
			return err
		}
		if size(m.shape) != m.network.Inputs() {
			return fmt.Errorf("metadata input_shape: %v; the model takes %d inputs", m.shape, m.network.Inputs())
		}
	}
	return m.transform(metadata)
}

// size is how many values have a shape; 0 for a shape that cannot be.
func size(shape []int) int {
	n := 1
	for _, of := range shape {
		if of < 1 || of > nn.MaxParams/n {
			return 0
		}
		n *= of
	}
	return n
}

// transform takes in what becomes of inputs before they go to the model.
func (m *Model) transform(metadata map[string]string) error {
	var s scaling
	if err := decode(metadata, "scaling", &s); err != nil {
		return err
	}
	if metadata["missing"] != "" {
		var f filling
		err := decode(metadata, "missing", &f)
		if err == nil && f.Omitted == 0 {
			m.filler, err = datasets.NewFiller(m.network.Inputs(), f.Columns, f.Values)
		}
		if err != nil {
			return fmt.Errorf("metadata missing: %w", err)
		}
		s.Omitted = max(s.Omitted, f.Omitted)
	}
	if metadata["origin"] != "" {
		var o origin
		err := decode(metadata, "origin", &o)
		if err == nil {
			m.origin, err = o.of(m.network.Inputs())
		}
		if err != nil {
			return fmt.Errorf("metadata origin: %w", err)
		}
		s.Omitted = max(s.Omitted, o.Omitted)
	}
	switch {
	case s.Omitted > 0:
		return fmt.Errorf("the file does not say how inputs are scaled or filled: they are %d, of which %d at most "+
			"are described", s.Omitted, maxDescribed)
	case s.Kind == datasets.NoScaling:
		return nil
	}
	if m.numeric = s.Columns; m.numeric == nil && len(s.Offset) == 0 {
		m.numeric = []int{} // a table of words alone
	}
	var err error
	if m.scaler, err = datasets.NewScaler(s.Kind, m.network.Inputs(), m.numeric, m.origin, s.Offset,
		s.Width); err != nil {
		return fmt.Errorf("metadata scaling: %w", err)
	}
	return nil
}

// decode reads a value of the metadata.
func decode(metadata map[string]string, key string, into any) error {
	if metadata[key] == "" {
		return fmt.Errorf("the file's metadata have no %s: it was saved by an earlier version", key)
	}
	if err := strict.DecodeKnown([]byte(metadata[key]), into); err != nil {
		return fmt.Errorf("metadata %s: line %w", key, err)
	}
	return nil
}

// samples reads a file, and makes its samples what the model takes.
func (m *Model) samples(o datasets.Other) (*datasets.Others, error) {
	if m.loader.Other == nil {
		return nil, fmt.Errorf("%s: the data set %s, which the model was trained on, has no format in which there "+
			"could be other samples", m.path, m.set)
	}
	o.Inputs, o.Classes, o.Layout = m.network.Inputs(), m.classes, m.layout
	o.Origin, o.Shape = m.origin, m.shape
	others, err := m.loader.Other(o)
	if err != nil {
		return nil, err
	}
	set := others.Set
	if m.filler != nil {
		m.filler.Apply(set)
	}
	if m.scaler != nil {
		set.Numeric = m.numeric
		m.scaler.Apply(set)
	}
	return others, nil
}
