package catalog

import (
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// readers read a section, or a word, of each sort of which there are synonyms.
func readers(c *Catalog) map[string]func(n *syntax.Node) error {
	return map[string]func(n *syntax.Node) error{
		"architecture":  reader(c, &c.Architectures),
		"consistency":   reader(c, &c.Consistencies),
		"model":         reader(c, &c.Models),
		"layer":         reader(c, &c.Layers),
		"optimizer":     reader(c, &c.Optimizers),
		"rate schedule": reader(c, &c.Schedules),
		"split":         reader(c, &c.Splits),
		"compressor":    reader(c, &c.Compressors),
		"delay":         reader(c, &c.Delays),
		"link rate":     reader(c, &c.LinkRates),
		"topology":      reader(c, &c.Topologies),
		"data set": func(n *syntax.Node) error {
			_, _, err := c.Datasets.read(c, n, "set")
			return err
		},
	}
}

func reader[T any](c *Catalog, ks *Kinds[T]) func(n *syntax.Node) error {
	return func(n *syntax.Node) error {
		_, _, err := ks.readWord(c, n)
		return err
	}
}

func TestWhatSynonymsStandForCanBeWritten(t *testing.T) {
	c := Default()
	all := readers(c)
	for what, names := range synonyms {
		for name, write := range names {
			if name != syntax.Fold(name) {
				t.Errorf("%s %s is never found: names are folded", what, name)
			}
			err := all[what](parse(t, "plan.yaml", "x: "+write).At("x"))
			if err != nil && !strings.Contains(err.Error(), "no such file") {
				t.Errorf("%s %s: %v", what, name, err)
			}
			key := "kind"
			if what == "data set" {
				key = "set"
			}
			err = all[what](parse(t, "plan.yaml", "x: {"+key+": "+strings.ToUpper(name)+"}").At("x"))
			if err == nil || !strings.Contains(err.Error(), "; ") ||
				!strings.Contains(err.Error(), write+" (accepted") {
				t.Errorf("%s %s is answered with %v", what, name, err)
			}
		}
	}
}

// Whatever a setting of an architecture, or a preset, is called is answered with what to write.
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

// A kind's name in other letters is answered with the name.
func TestNamesOfKindsInOtherLettersAreAnsweredWithTheName(t *testing.T) {
	c := Default()
	check := func(what, key string, names []string) {
		for _, name := range names {
			other := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			err := readers(c)[what](parse(t, "plan.yaml", "x: {"+key+": "+other+"}").At("x"))
			if other != name && (err == nil || !strings.Contains(err.Error(), "did you mean "+name+"?")) {
				t.Errorf("%s %s: %v", what, other, err)
			}
		}
	}
	check("architecture", "kind", c.Architectures.names())
	check("consistency", "kind", c.Consistencies.names())
	check("model", "kind", c.Models.names())
	check("layer", "kind", c.Layers.names())
	check("optimizer", "kind", c.Optimizers.names())
	check("rate schedule", "kind", c.Schedules.names())
	check("split", "kind", c.Splits.names())
	check("compressor", "kind", c.Compressors.names())
	check("delay", "kind", c.Delays.names())
	check("link rate", "kind", c.LinkRates.names())
	check("topology", "kind", c.Topologies.names())
	check("data set", "set", c.Datasets.names())
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
