package syntax

import (
	"bytes"
	"encoding/json"
)

// JSON writes the node as a reader of YAML takes it: scalars without quotes as numbers and truth
// values where they look like such.
func (n *Node) JSON() ([]byte, error) {
	switch n.Kind {
	case Scalar:
		if !n.Quoted && (n.Text == "true" || n.Text == "false" || Ambiguous(n.Text) && json.Valid([]byte(n.Text))) {
			return []byte(n.Text), nil
		}
		return MarshalPlain(n.Text)
	case List:
		items := []byte{'['}
		for i, item := range n.Items {
			text, err := item.JSON()
			if err != nil {
				return nil, err
			}
			if i > 0 {
				items = append(items, ',')
			}
			items = append(items, text...)
		}
		return append(items, ']'), nil
	case Map:
		return MarshalObject(n.Fields, func(f Field) (string, any) {
			text, err := f.Value.JSON()
			if err != nil {
				return f.Key, err // no value of a node fails to be written
			}
			return f.Key, json.RawMessage(text)
		})
	}
	return []byte("null"), nil
}

// MarshalPlain is json.Marshal without escapes that only HTML needs.
func MarshalPlain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// MarshalObject writes a JSON object of what entry says of each item, in their order.
func MarshalObject[T any](list []T, entry func(T) (string, any)) ([]byte, error) {
	b := []byte{'{'}
	for i, item := range list {
		if i > 0 {
			b = append(b, ',')
		}
		name, value := entry(item)
		for j, v := range []any{name, value} {
			text, err := MarshalPlain(v)
			if err != nil {
				return nil, err
			}
			if j == 1 {
				b = append(b, ':')
			}
			b = append(b, text...)
		}
	}
	return append(b, '}'), nil
}
