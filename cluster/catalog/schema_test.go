package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/nn"
)

func TestEveryKeyOfTheCatalogSaysWhatItMeans(t *testing.T) {
	keys := 0
	Default().Schema("plan").Walk("", func(path string, s *settings.Schema) {
		keys++
		if definition := strings.Count(path, ".") == 1; s.Description == "" && s.Const == nil && !definition &&
			!strings.HasPrefix(path, ".swept.") {
			t.Errorf("%s has no description: give the field of its settings a tag doc", path)
		}
		if strings.HasSuffix(s.Description, ".") && s.Pattern == "" && len(s.AnyOf) == 0 && s.Others == nil &&
			s.Type == nil {
			t.Errorf("%s: %q ends in a dot", path, s.Description)
		}
	})
	if keys < 300 {
		t.Errorf("only %d keys were seen", keys)
	}
}

func TestAKeyWithoutADescriptionIsFound(t *testing.T) {
	c := Default()
	c.Models.Add(Define("own", "a model", func() struct {
		Width int `plan:"width"`
	} {
		return struct {
			Width int `plan:"width"`
		}{3}
	}, func(*Catalog, *struct {
		Width int `plan:"width"`
	}) (nn.Model, error) {
		return nil, nil
	}))
	var bare []string
	c.Schema("plan").Walk("", func(path string, s *settings.Schema) {
		if s.Description == "" && strings.HasSuffix(path, ".width") {
			bare = append(bare, path)
		}
	})
	if !slices.Equal(bare, []string{".model.width", ".swept.model.width"}) {
		t.Errorf("found %v", bare)
	}
}

// checkWords builds every kind of one sort with every word that its keys accept, and with none of
// them.
func checkWords[T any](t *testing.T, c *Catalog, ks *Kinds[T], key string) (words int) {
	dir := folder(t)
	for _, k := range ks.All() {
		_, described := k.declared()
		for _, p := range described.Properties {
			for _, word := range p.Schema.Enum {
				words++
				n := section(t, dir, key, ks.what, k.Name)
				if err := n.Set(p.Name, syntax.NewScalar(fmt.Sprint(word))); err != nil {
					t.Fatal(err)
				}
				value, _, err := ks.read(c, n, key)
				if err != nil {
					t.Errorf("%s %s: %s: %v is declared, but %v", ks.what, k.Name, p.Name, word, err)
				}
				if v, ok := any(value).(interface{ Validate() error }); ok && err == nil && v.Validate() != nil {
					t.Errorf("%s %s: %s: %v is declared, but %v", ks.what, k.Name, p.Name, word, v.Validate())
				}
			}
		}
	}
	return words
}

func TestEveryWordThatIsDeclaredIsOneThatTheKindTakes(t *testing.T) {
	c := Default()
	words := checkWords(t, c, &c.Models, "kind") + checkWords(t, c, &c.Datasets, "set") +
		checkWords(t, c, &c.Architectures, "kind")
	if words < 20 {
		t.Errorf("only %d words were tried", words)
	}
}

func TestTheSchemaIsTheSameEachTime(t *testing.T) {
	first, err := json.Marshal(Default().Schema("plan"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := json.Marshal(Default().Schema("plan"))
	if err != nil || string(first) != string(second) {
		t.Errorf("two schemas differ (%v)", err)
	}
}
