package settings

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// tagged is a field of a struct with what its tags say.
type tagged struct {
	key                      string
	index                    []int
	required, omitzero, node bool
	doc                      string   // what the key means
	names                    string   // the definition in a schema that a node is read by
	words                    []string // the only ones that are accepted; nil for any
	limits                   *limits  // of a number; nil for none
}

// declared reads the tags of a struct's field i.
func declared(f reflect.StructField, tag string, i int) tagged {
	options := strings.Split(tag, ",")
	t := tagged{
		key: options[0], index: []int{i}, doc: f.Tag.Get("doc"), names: f.Tag.Get("names"),
		required: slices.Contains(options[1:], "required"),
		omitzero: slices.Contains(options[1:], "omitzero"),
		node:     slices.Contains(options[1:], "node"),
	}
	if words := f.Tag.Get("words"); words != "" {
		t.words = strings.Split(words, "|")
	}
	if text := f.Tag.Get("range"); text != "" {
		t.limits = parseLimits(text)
	}
	return t
}

// limits bound a number.
type limits struct {
	low, high string // as in the tag; empty for none
	above     bool   // low itself is not accepted
}

const limitsMessage = "settings: a range in a tag is written 1..1000, 0.. or >0, not "

func parseLimits(text string) *limits {
	l := limits{}
	if low, above := strings.CutPrefix(text, ">"); above {
		l.low, l.above = low, true
	} else {
		l.low, l.high, _ = strings.Cut(text, "..")
	}
	for _, bound := range []string{l.low, l.high} {
		if _, err := strconv.ParseFloat(bound, 64); err != nil && (bound != "" || l.low == "") {
			panic(limitsMessage + text)
		}
	}
	return &l
}

// hold reports whether a number is within the limits.
func (l *limits) hold(v float64) bool {
	low, _ := strconv.ParseFloat(l.low, 64)
	high, err := strconv.ParseFloat(l.high, 64)
	return v >= low && (v > low || !l.above) && (err != nil || v <= high)
}

func (l *limits) String() string {
	switch {
	case l.above:
		return "more than " + l.low
	case l.high == "":
		return l.low + " or more"
	}
	return l.low + " to " + l.high
}

// field reads the value of a key, and checks it by what the field's tags say.
func (d *decoder) field(f tagged, n *syntax.Node, v reflect.Value) {
	before := len(d.errs)
	d.value(n, v)
	for v.Kind() == reflect.Pointer && !v.IsNil() && v.Type() != nodeType {
		v = v.Elem()
	}
	switch {
	case len(d.errs) > before || n.Kind != syntax.Scalar:
	case f.words != nil && v.Kind() != reflect.String && !slices.Contains(f.words, strings.TrimPrefix(n.Text, "+")):
		d.errorf(n, "%s is not accepted; accepted are %s", syntax.Printable(n.Text, syntax.QuoteWidth), strings.Join(f.words, ", "))
	case f.words != nil && !slices.Contains(f.words, n.Text):
		if len(d.errs) < syntax.MaxErrors {
			d.errs = append(d.errs, syntax.UnknownWord(n, f.key, f.words))
		}
	case f.limits != nil && !f.limits.hold(number(v)):
		d.errorf(n, "%s is out of range; accepted is %s", syntax.Printable(n.Text, syntax.QuoteWidth), f.limits)
	}
}

// number is the value of a field that has limits.
func number(v reflect.Value) float64 {
	switch {
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	case v.CanFloat():
		return v.Float()
	}
	panic(fmt.Sprintf("settings: only numbers have a range, not %s", v.Type()))
}

// taggedFields lists the fields that have tags, in the order of the struct, those of embedded
// structs in their place.
func taggedFields(t reflect.Type) []tagged {
	var list []tagged
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("plan")
		if f.Anonymous && !ok && f.Type.Kind() == reflect.Struct {
			for _, inner := range taggedFields(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				list = append(list, inner)
			}
			continue
		}
		if !ok || !f.IsExported() {
			continue
		}
		list = append(list, declared(f, tag, i))
	}
	return list
}

func keysOf(fields []tagged) []string {
	var keys []string
	for _, f := range fields {
		if !f.node {
			keys = append(keys, f.key)
		}
	}
	sort.Strings(keys)
	return keys
}

func fieldFor(fields []tagged, key string) (tagged, bool) {
	for _, f := range fields {
		if !f.node && f.key == key {
			return f, true
		}
	}
	return tagged{}, false
}
