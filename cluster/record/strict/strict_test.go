package strict_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/record/strict"
)

// share is a type with its own UnmarshalJSON.
type share float64

// Sized is embedded by a pointer.
type Sized struct {
	Size uint8 `json:"size"`
}

func (s *share) UnmarshalJSON(text []byte) error {
	if string(text) != "1" {
		return errors.New("1 is accepted")
	}
	*s = 1
	return nil
}

type named struct {
	Name string `json:"name"`
}

type sample struct {
	named
	*Sized
	Named  `json:"inner"`
	Count  int            `json:"count"`
	Rate   *float64       `json:"rate"`
	Whole  bool           `json:"whole"`
	Shares []share        `json:"shares"`
	Runs   []Named        `json:"runs"`
	By     map[string]int `json:"by"`
	Raw    []byte         `json:"raw"`
	Secret int            `json:"-"`
}

// Named is embedded with a key of its own.
type Named struct {
	Label string `json:"label"`
}

func TestErrorsNameLineKeyAndWhatIsAccepted(t *testing.T) {
	leak := regexp.MustCompile(`json:|strict|invalid character|\b[a-z]+\.[A-Z]|UnmarshalJSON|Go `)
	for text, want := range map[string]string{
		"":                                 "1: the file ends too early",
		"{\n\"count\": 1":                  "2: the file ends too early",
		"\n x":                             `2: no JSON: unexpected "x" at byte 2`,
		"{\"count\": NaN}":                 `1: key "count" is NaN, which is no JSON; a whole number is accepted`,
		"{\"rate\":\n-Infinity}":           `2: key "rate" is -Infinity, which is no JSON; a finite number is accepted`,
		"{\"runs\": [{}, None]}":           `1: key "runs[1]" is None, which is no JSON; an object is accepted`,
		"{\"shares\": [1, Infinity]}":      `1: key "shares[1]": 1 is accepted`,
		"{\"by\": {\"a\": 1, \"b\": nan}}": `1: key "by.b" is nan, which is no JSON; a whole number is accepted`,
		"{\"surprise\": [NaN]}":            `1: no JSON: unexpected "N" at byte 14`,
		"{count: 1}":                       `1: no JSON: unexpected "c" at byte 1`,
		"{\"count\": 1 NaN}":               `1: no JSON: unexpected "N" at byte 12`,
		"NaN":                              `1: no JSON: unexpected "N" at byte 0`,
		"{}\n}":                            "2: there is text after the end",
		"{} {}":                            "1: there is text after the end",
		"null":                             "1: the content is null; an object is accepted",
		"[]":                               "1: the content is a list; an object is accepted",
		"\n\"x\"":                          `2: the content is "x"; an object is accepted`,
		"3":                                "1: the content is the number 3; an object is accepted",
		"{\n\n\"coutn\": 1}":               `3: unknown key "coutn"; accepted: by, count, inner, name, rate, raw, runs, shares, size, whole`,
		`{"Secret": 1}`:                    `1: unknown key "Secret"`,
		`{"count": "x"}`:                   `1: key "count" is "x"; a whole number is accepted`,
		`{"count": 1.5}`:                   `1: key "count" is the number 1.5; a whole number is accepted`,
		`{"count": 1e400}`:                 `1: key "count" is the number 1e400; a whole number`,
		`{"size": -1}`:                     `1: key "size" is the number -1; a whole number of 0 or more is accepted`,
		`{"rate": 1e400}`:                  `1: key "rate" is the number 1e400; a finite number is accepted`,
		`{"whole": 1}`:                     `1: key "whole" is the number 1; true or false is accepted`,
		`{"name": {}}`:                     `1: key "name" is an object; a string is accepted`,
		`{"inner": {"label": true}}`:       `1: key "inner.label" is true; a string is accepted`,
		`{"inner": []}`:                    `1: key "inner" is a list; an object is accepted`,
		"{\"runs\": [{},\n{\"labl\": 1}]}": `2: unknown key "runs[1].labl"; accepted: label`,
		`{"runs": {"label": 1}}`:           `1: key "runs" is an object; a list is accepted`,
		"{\"shares\": [1,\n1,\n2]}":        `3: key "shares[2]": 1 is accepted`,
		`{"by": {"a": "b"}}`:               `1: key "by.a" is "b"; a whole number is accepted`,
		`{"raw": 7}`:                       `1: key "raw" is the number 7; a string in base64 is accepted`,
	} {
		err := strict.Decode([]byte(text), &sample{})
		if err == nil || !strings.HasPrefix(err.Error(), want) || leak.MatchString(err.Error()) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	good := []byte("\n{\"COUNT\": 3, \"rate\": null, \"shares\": [1], \"name\": \"n\"}\n")
	var lenient, got sample
	if err := errors.Join(strict.Decode(good, &got), json.Unmarshal(good, &lenient)); err != nil ||
		got.Count != 3 || got.Name != lenient.Name {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestDecodeKnownIgnoresUnknownKeysAndNamesOtherFaults(t *testing.T) {
	var got sample
	good := []byte(`{"surprise": {"x": [1]}, "count": 3, "runs": [{"labl": 1, "label": "a"}]}`)
	if err := strict.DecodeKnown(good, &got); err != nil || got.Count != 3 || got.Runs[0].Label != "a" {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"{\"surprise\": 1,\n\"count\": \"x\"}": `2: key "count" is "x"; a whole number is accepted`,
		`{"runs": [{"labl": 1, "label": 2}]}`:  `1: key "runs[0].label" is the number 2; a string is accepted`,
		`{"surprise": 1, "rate": NaN}`:         `1: key "rate" is NaN, which is no JSON; a finite number is accepted`,
		`{"surprise": 1`:                       "1: the file ends too early",
		"{} {}":                                "1: there is text after the end",
	} {
		if err := strict.DecodeKnown([]byte(text), &sample{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
