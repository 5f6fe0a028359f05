package csv

import (
	"slices"
	"strings"
	"testing"
)

func TestAColumnMakesGroupsAndIsNoInput(t *testing.T) {
	const text = "age,site,label\n1,lon,x\n2,fra,y\n,fra,y\n4,lon,x\n"
	for _, o := range []Options{{By: "site"}, {By: "2"}, {By: "site", Words: []string{"site"}},
		{By: "site", Ignore: []string{"site"}}} {
		o.Label, o.Missing = "label", Drop
		s, err := Read(strings.NewReader(text), "f", o)
		if err != nil || s.Validate() != nil {
			t.Fatal(err)
		}
		inputs := []string{"age"}
		if o.Words != nil {
			inputs = []string{"age", "site=fra", "site=lon"}
		}
		if !slices.Equal(s.GroupNames, []string{"fra", "lon"}) || !slices.Equal(s.Groups, []int32{1, 0, 1}) ||
			!slices.Equal(s.Columns, inputs) {
			t.Errorf("%+v: groups %v of %q, inputs %q", o, s.Groups, s.GroupNames, s.Columns)
		}
		if sub := s.Subset([]int32{2, 1}); !slices.Equal(sub.Groups, []int32{1, 0}) {
			t.Errorf("groups of a subset: %v", sub.Groups)
		}
	}
	for text, want := range map[string]string{
		"age,label\n1,x\n":              `f:1: there is no column "site"; accepted are names of a header`,
		"age,site,label\n1,,x\n":        "f:2: column 2 (site), by which the samples are split: the field is empty",
		"age,site,label\n1,a\x00b,x\n":  "f:2: column 2 (site), by which the samples are split: \"a\\x00b\" has a",
		"site,label\na,x\n":             "f: no column is left beside the label",
		"age,site,label\n1,a,x\n2,x\n2": "f:3: 2 fields; the table has 3 columns",
	} {
		_, err := Read(strings.NewReader(text), "f", Options{Label: "label", By: "site"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	_, err := Read(strings.NewReader("age,site,label\n1,,x\n"), "f", Options{Label: "label", By: "site", Missing: Mean})
	if err == nil || !strings.Contains(err.Error(), "the value that the samples are split by is missing; missing:") {
		t.Error(err)
	}
}
