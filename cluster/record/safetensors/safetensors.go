// Package safetensors reads, writes and compares models in the format safetensors
// (https://huggingface.co/docs/safetensors): 8 bytes of the header's length, the header in JSON,
// and the values, all little-endian. Tensors are of type F32.
package safetensors

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/gradwire/gradwire/cluster/record/strict"
)

// Tensor is a part of a model's flat parameter vector.
type Tensor struct {
	Name  string
	Shape []int
	// Offset is the index of its first element.
	Offset int
}

const (
	// MaxHeader is the most bytes of a header that Read accepts.
	MaxHeader = 16 << 20
	// MaxElements is the most parameters that Read accepts.
	MaxElements = 1<<31 - 1
	// chunkSize is how many bytes are converted at a time, so that a hostile length costs no
	// memory.
	chunkSize = 1 << 16
)

// entry describes a tensor in the header.
type entry struct {
	Type    string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets []uint64 `json:"data_offsets"`
}

// size returns the number of elements of a shape; false if it is negative or over the limit.
func size[T int | int64](shape []T) (int, bool) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 || int64(d) > MaxElements {
			return 0, false
		}
		if n *= int64(d); n > MaxElements {
			return 0, false
		}
	}
	return int(n), true
}

// compareTensors orders by offset; an empty tensor comes before the one that begins where it lies.
func compareTensors(a, b Tensor) int {
	x, _ := size(a.Shape)
	y, _ := size(b.Shape)
	return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(min(x, 1), min(y, 1)), cmp.Compare(a.Name, b.Name))
}

// Write writes the flat parameter vector that the parts are together. The tensors must cover it
// without gap or overlap; without any, it is one tensor named "params". Metadata may be nil.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string, parts ...[]float32) error {
	total := 0
	for _, part := range parts {
		total += len(part)
	}
	if len(tensors) == 0 {
		tensors = []Tensor{{Name: "params", Shape: []int{total}}}
	}
	header, err := encodeHeader(total, tensors, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, part := range parts {
		if err := writeFloats(w, part); err != nil {
			return err
		}
	}
	return nil
}

// writeFloats writes values, little-endian.
func writeFloats(w io.Writer, params []float32) error {
	var chunk [chunkSize]byte
	for len(params) > 0 {
		n := min(len(params), len(chunk)/4)
		for i, v := range params[:n] {
			binary.LittleEndian.PutUint32(chunk[4*i:], math.Float32bits(v))
		}
		if _, err := w.Write(chunk[:4*n]); err != nil {
			return err
		}
		params = params[n:]
	}
	return nil
}

// encodeHeader returns the length and the header, padded with spaces so that
// the values are aligned.
func encodeHeader(total int, tensors []Tensor, metadata map[string]string) ([]byte, error) {
	b := append(make([]byte, 8), '{')
	if len(metadata) > 0 {
		text, _ := json.Marshal(metadata) // strings and numbers always have a JSON form
		b = append(append(append(b, `"__metadata__":`...), text...), ',')
	}
	sorted := slices.Clone(tensors)
	slices.SortStableFunc(sorted, compareTensors)
	next, seen := 0, map[string]bool{"__metadata__": true}
	for i, t := range sorted {
		n, ok := size(t.Shape)
		switch {
		case !ok:
			return nil, fmt.Errorf("tensor %q: shape %v is negative or over %d elements",
				t.Name, t.Shape, MaxElements)
		case seen[t.Name]:
			return nil, fmt.Errorf("tensor %q: this name is taken", t.Name)
		case t.Offset != next:
			return nil, fmt.Errorf("tensor %q begins at element %d, but the ones before it end at %d",
				t.Name, t.Offset, next)
		}
		if i > 0 {
			b = append(b, ',')
		}
		name, _ := json.Marshal(t.Name)
		shape, _ := json.Marshal(append([]int{}, t.Shape...))
		b = fmt.Appendf(b, `%s:{"dtype":"F32","shape":%s,"data_offsets":[%d,%d]}`, name, shape, 4*next, 4*(next+n))
		next, seen[t.Name] = next+n, true
	}
	if next != total {
		return nil, fmt.Errorf("the tensors have %d elements, the parameters %d", next, total)
	}
	b = append(b, '}')
	for len(b)%8 != 0 {
		b = append(b, ' ')
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)-8))
	return b, nil
}

// Read reads a safetensors file of F32 tensors: the flat parameter vector,
// where the tensors lie in it, sorted by offset, and the metadata. Its errors say
// what is wrong with the file.
func Read(r io.Reader) (params []float32, tensors []Tensor, metadata map[string]string, err error) {
	f, err := newReader(r)
	if err != nil {
		return nil, nil, nil, err
	}
	params = make([]float32, 0, min(f.total, chunkSize))
	for i := range f.total {
		v, err := f.value(i)
		if err != nil {
			return nil, nil, nil, err
		}
		params = append(params, math.Float32frombits(v))
	}
	return params, f.tensors, f.metadata, f.end()
}

// reader reads a file value by value.
type reader struct {
	*bufio.Reader
	tensors  []Tensor
	total    int // values
	metadata map[string]string
}

// newReader reads what comes before the values.
func newReader(in io.Reader) (*reader, error) {
	r := &reader{Reader: bufio.NewReaderSize(in, chunkSize)}
	var length [8]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, fmt.Errorf("the length of the header (8 bytes): %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > MaxHeader {
		return nil, fmt.Errorf("the header would have %d bytes; at most %d are accepted", n, MaxHeader)
	}
	header, err := io.ReadAll(io.LimitReader(r, int64(n)))
	switch {
	case err != nil:
	case uint64(len(header)) < n:
		return nil, fmt.Errorf("the header ends after %d of %d bytes", len(header), n)
	default:
		err = r.decodeHeader(header)
	}
	if err != nil {
		return nil, fmt.Errorf("the header: %w", err)
	}
	return r, nil
}

// value reads value i, as its bits.
func (r *reader) value(i int) (uint32, error) {
	b, err := r.Peek(4)
	if err != nil {
		return 0, fmt.Errorf("the values end before element %d of %d: %w", i, r.total, err)
	}
	v := binary.LittleEndian.Uint32(b)
	_, err = r.Discard(4)
	return v, err
}

// end expects the end of the file, behind the last value.
func (r *reader) end() error {
	_, err := r.Peek(1)
	switch {
	case err == nil:
		return fmt.Errorf("there are bytes after the last of %d values", r.total)
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

func (r *reader) decodeHeader(text []byte) error {
	var entries map[string]json.RawMessage
	if err := strict.Decode(text, &entries); err != nil {
		return fmt.Errorf("line %w", err)
	}
	if raw, ok := entries["__metadata__"]; ok {
		if err := strict.Decode(raw, &r.metadata); err != nil {
			return fmt.Errorf("__metadata__: line %w", err)
		}
		delete(entries, "__metadata__")
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		t, err := decodeTensor(name, entries[name])
		if err != nil {
			return err
		}
		r.tensors = append(r.tensors, t)
	}
	slices.SortFunc(r.tensors, compareTensors)
	for _, t := range r.tensors {
		if t.Offset != r.total {
			return fmt.Errorf("tensor %q begins at element %d, but the ones before it end at %d",
				t.Name, t.Offset, r.total)
		}
		n, _ := size(t.Shape)
		if r.total += n; r.total > MaxElements {
			return fmt.Errorf("tensor %q: more than %d elements in all", t.Name, MaxElements)
		}
	}
	return nil
}

func decodeTensor(name string, raw json.RawMessage) (Tensor, error) {
	var h entry
	if err := strict.Decode(raw, &h); err != nil {
		return Tensor{}, fmt.Errorf("tensor %q: line %w", name, err)
	}
	n, ok := size(h.Shape)
	switch {
	case h.Type != "F32":
		return Tensor{}, fmt.Errorf("tensor %q: type %q; F32 is accepted", name, h.Type)
	case !ok:
		return Tensor{}, fmt.Errorf("tensor %q: shape %v is negative or over %d elements",
			name, h.Shape, MaxElements)
	case len(h.Offsets) != 2 || h.Offsets[0]%4 != 0 || h.Offsets[0] > 4*MaxElements ||
		h.Offsets[1] != h.Offsets[0]+4*uint64(n):
		return Tensor{}, fmt.Errorf("tensor %q: data_offsets %v do not fit shape %v", name, h.Offsets, h.Shape)
	}
	t := Tensor{Name: name, Shape: make([]int, len(h.Shape)), Offset: int(h.Offsets[0] / 4)}
	for i, d := range h.Shape {
		t.Shape[i] = int(d)
	}
	return t, nil
}
