package catalog

import (
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// family is a family of kinds, with the key of the kind and a reader of a section or a word.
type family struct {
	key   string
	names []string
	read  func(n *syntax.Node) error
}

// families returns all families that have synonyms.
func families(c *Catalog) map[string]family {
	all := map[string]family{}
	addFamily(c, all, &c.Architectures)
	addFamily(c, all, &c.Consistencies)
	addFamily(c, all, &c.Models)
	addFamily(c, all, &c.Layers)
	addFamily(c, all, &c.Optimizers)
	addFamily(c, all, &c.Schedules)
	addFamily(c, all, &c.Splits)
	addFamily(c, all, &c.Compressors)
	addFamily(c, all, &c.Delays)
	addFamily(c, all, &c.LinkRates)
	addFamily(c, all, &c.Topologies)
	all[c.Datasets.what] = family{"set", c.Datasets.names(), func(n *syntax.Node) error {
		_, _, err := c.Datasets.read(c, n, "set")
		return err
	}}
	return all
}

func addFamily[T any](c *Catalog, all map[string]family, ks *Kinds[T]) {
	all[ks.what] = family{"kind", ks.names(), func(n *syntax.Node) error {
		_, _, err := ks.readWord(c, n)
		return err
	}}
}

func TestEverySynonymSuggestsAValidSection(t *testing.T) {
	all := families(Default())
	for _, s := range synonyms {
		f := all[s.what]
		err := f.read(parse(t, "plan.yaml", "x: "+s.write).At("x"))
		if err != nil && !strings.Contains(err.Error(), "no such file") {
			t.Errorf("%s %s: %v", s.what, s.write, err)
		}
		for _, name := range strings.Fields(s.names) {
			if name != syntax.Fold(name) {
				t.Errorf("%s %s is never found: names are folded", s.what, name)
			}
			err := f.read(parse(t, "plan.yaml", "x: {"+f.key+": "+strings.ToUpper(name)+"}").At("x"))
			if err == nil || !strings.Contains(err.Error(), "; ") ||
				!strings.Contains(err.Error(), s.write+" (accepted") {
				t.Errorf("%s %s is answered with %v", s.what, name, err)
			}
		}
	}
}

// The name of a preset, or a value of a setting, in the place of an architecture: the error says how to
// write the architecture with it.
func TestValuesOfSettingsAreNoArchitectures(t *testing.T) {
	c := Default()
	var words []string
	for _, k := range c.Architectures.All() {
		for preset := range k.presets {
			words = append(words, preset)
		}
		for _, key := range k.Keys() {
			if len(key.Words) > 1 {
				words = append(words, key.Words...)
			}
		}
	}
	for _, word := range append(words, c.Consistencies.names()...) {
		if _, is := c.Architectures.find(word); is {
			continue
		}
		_, _, err := c.Architectures.Read(c, parse(t, "plan.yaml", "x: {kind: "+word+"}").At("x"))
		if err == nil || !strings.Contains(err.Error(), "write {kind: ") {
			t.Errorf("%s: %v", word, err)
		}
	}
}

func TestNamesOfKindsInOtherSpellingsSuggestTheName(t *testing.T) {
	for what, f := range families(Default()) {
		for _, name := range f.names {
			other := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			err := f.read(parse(t, "plan.yaml", "x: {"+f.key+": "+other+"}").At("x"))
			if other != name && (err == nil || !strings.Contains(err.Error(), "did you mean "+name+"?")) {
				t.Errorf("%s %s: %v", what, other, err)
			}
		}
	}
}

func TestSettingsOfOtherKindsAreAnsweredWithTheKind(t *testing.T) {
	c := Default()
	for text, says := range map[string]string{
		"{kind: sgd, momentum: 0.9}": "momentum has it: write {kind: momentum, momentum: 0.9}",
		"{kind: sgd, lr: 0.1}":       "did you mean rate?",
		"{kind: sgd, LR: 0.1}":       "did you mean rate?",
		"{rate: 0.1}":                "such as {kind: sgd, rate: 0.1}",
		"{beta1: 0.9}":               "such as {kind: adam, beta1: 0.9}",
	} {
		_, _, err := c.Optimizers.Read(c, parse(t, "plan.yaml", "x: "+text).At("x"))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
