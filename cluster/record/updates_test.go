package record

import (
	"strings"
	"testing"
)

func TestStalenessIsEmptyWhereNoModelHasVersions(t *testing.T) {
	never := Update{Node: "n", Staleness: Staleness{Counts: []Count{{Value: 0, Count: 4}}}}
	late := Update{Node: "n", Staleness: Staleness{Max: 2, Counts: []Count{{Value: 0, Count: 3}, {Value: 2, Count: 1}}}}
	for _, c := range []struct {
		name   string
		run    Run
		update Update
		want   string
	}{
		{"a server's model", Run{Models: 1}, never, "0,,1,n,staleness,,0,0,4,0\n"},
		{"several models", Run{Models: 3}, never, "0,,1,n,staleness,,,,4,\n"},
		{"a sample of one of several", Run{Models: 1, Holders: 6}, never, "0,,1,n,staleness,,,,4,\n"},
		{"several models that have versions", Run{Models: 3}, late,
			"0,,1,n,staleness,,0,0,3,0\n0,,1,n,staleness,,2,2,1,2\n"},
	} {
		c.run.Seed = 1
		w := newRowWriter(nil, &c.run)
		updateRows(w, &c.run, &Data{Updates: []Update{c.update}})
		if got := string(w.bytes()); strings.TrimSpace(got) != strings.TrimSpace(c.want) {
			t.Errorf("%s: rows\n%s, want\n%s", c.name, got, c.want)
		}
	}
}
