package catalog

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/actors/gossip"
	"github.com/gradwire/gradwire/actors/gossiplearning"
	"github.com/gradwire/gradwire/actors/noloco"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/nn/compress"
)

var update = flag.Bool("update", false, "rewrite the tables of settings")

// tablesFile has a table of the keys of every section and kind.
const tablesFile = "../plan/SETTINGS.md"

// tables writes the tables of all that a plan can set.
type tables struct{ strings.Builder }

// rows writes a table of the keys that a schema describes; the map given adds defaults to its own.
func (t *tables) rows(s *settings.Schema, defaults *syntax.Node) {
	if len(s.Properties) == 0 {
		return
	}
	t.WriteString("\n| key | default | accepted | what it means |\n|---|---|---|---|\n")
	for _, p := range s.Properties {
		value, given := defaults.Get(p.Name)
		if !given {
			value = p.Schema.Default
		}
		text := "optional"
		switch {
		case slices.Contains(s.Required, p.Name):
			text = "required"
		case value != nil && value.Kind != syntax.Null && value.Flow() != `""`:
			text = "`" + value.Flow() + "`"
		}
		fmt.Fprintf(t, "| `%s` | %s | %s | %s |\n", p.Name, text, accepted(p.Schema), p.Schema.Description)
	}
}

// accepted says which values a key may have, words as code.
func accepted(s *settings.Schema) string {
	if words := s.Words(); words != nil {
		return "`" + strings.Join(words, "`, `") + "`"
	}
	return s.Accepted()
}

// section writes the keys of a section of a plan, which a struct declares or a schema describes. It
// leaves out the keys that another table lists.
func (t *tables) section(title string, declared any, elsewhere ...string) {
	fmt.Fprintf(t, "\n## %s\n", title)
	s, described := declared.(*settings.Schema)
	if !described {
		s = settings.SchemaOf(declared)
	}
	if s.Properties == nil && len(s.AnyOf) == 2 {
		s = s.AnyOf[1] // a word, or a map
	}
	s.Properties = slices.DeleteFunc(s.Properties, func(p settings.Property) bool {
		return slices.Contains(elsewhere, p.Name)
	})
	t.rows(s, nil)
}

func sort[T any](t *tables, title, key string, kinds []Kind[T]) {
	fmt.Fprintf(t, "\n## %s\n", title)
	for _, k := range kinds {
		fmt.Fprintf(t, "\n`%s: %s` — %s\n", key, k.Name, k.Doc)
		defaults, schema := k.declared()
		t.rows(schema, defaults)
	}
}

// keysOfLinks are what links have beside their ends.
func keysOfLinks() (keys []string) {
	for _, p := range settings.SchemaOf(&plan.LinkSettings{}).Properties {
		keys = append(keys, p.Name)
	}
	return keys
}

// servers are the settings of several servers, with their defaults.
func servers() *ps.Servers {
	s := &ps.Servers{}
	s.SetDefaults()
	return s
}

// write writes all tables.
func (t *tables) write(c *Catalog) {
	t.WriteString("# The settings of a plan\n\nGenerated from the declarations by `go generate ./cluster/catalog`.\n")
	d := plan.Default()
	t.section("A plan", d)
	t.section("`nodes`, each", &plan.NodeSpec{})
	t.section("`compute` of a node", &plan.Compute{})
	t.section("`wander` of a compute", &plan.Wander{})
	t.section("`available` of a node", &plan.Available{})
	t.section("`network`", &d.Network)
	t.section("`network.default`; also each of `network.links`, beside its ends", &d.Network.Default)
	t.section("The ends of `network.links`, each", &plan.LinkSpec{}, keysOfLinks()...)
	t.section("`loss` of a link", &plan.Loss{})
	t.section("`bursts` of a loss", &link.Bursts{K: 1})
	outage := settings.SchemaOf(&plan.Outage{})
	t.section("`outages` of a link, each: one", outage.Else)
	t.section("`outages` of a link, each: many at random", outage.Then)
	t.section("`evaluate`", &d.Evaluate)
	t.section("`stop`", &d.Stop)
	t.section("`schedule`, each", &plan.Change{})
	t.section("`faults`", &plan.Faults{})
	t.section("`faults.crash`", &plan.CrashFaults{})
	t.section("`faults.pause`", &plan.PauseFaults{})
	t.section("`faults.slow`", &plan.SlowFaults{})
	t.section("`faults.preempt`", &plan.PreemptFaults{})
	t.section("`faults.cut`", &plan.CutFaults{})
	t.section("`faults.swizzle`", &plan.SwizzleFaults{})
	t.section("`checkpoint`", &plan.Checkpoint{Keep: 3})
	t.section("`train`", &training{Batch: 32})
	t.section("`data`, whatever the set", &common{Fit: "train"})
	sort(t, "`data`", "set", c.Datasets.All())
	sort(t, "`data.split`", "kind", c.Splits.All())
	sort(t, "`model`", "kind", c.Models.All())
	sort(t, "`model.layers` of `kind: network`", "kind", c.Layers.All())
	sort(t, "`train.optimizer`", "kind", c.Optimizers.All())
	sort(t, "`rate` of an optimizer, beside a number", "kind", c.Schedules.All())
	t.section("`architecture`, whatever the kind", &parts{})
	sort(t, "`architecture`", "kind", c.Architectures.All())
	sort(t, "`architecture.consistency`", "kind", c.Consistencies.All())
	t.section("`architecture.servers` of `kind: parameter-server`", servers())
	t.section("`architecture.compress` of `kind: parameter-server`", &compression{Feedback: compress.EF})
	t.section("`architecture.compress` of `kind: all-reduce`", &upward{Feedback: compress.EF})
	t.section("`architecture.compress` of `kind: gossip` and `kind: ad-psgd`", &whole{})
	t.section("`architecture.choco`", &choco{Choco: dpsgd.Choco{Rate: 1}})
	sort(t, "what compresses, in `architecture.compress` and `architecture.choco`", "kind", c.Compressors.All())
	choice := gossip.Default().Choice
	t.section("`choose` of `kind: gossip`", &choice)
	outer := noloco.Default().Outer
	t.section("`outer` of `kind: noloco`", &outer)
	flow := gossiplearning.Default().Flow
	t.section("`flow` of `kind: gossip-learning`", &flow)
	sort(t, "`delay` of a link, beside a duration", "kind", c.Delays.All())
	t.section("`delay` of a link, whatever the kind", &drawing{Draw: "message"})
	sort(t, "`rate` of a link, `uplink` and `downlink` of a node, beside a rate", "kind", c.LinkRates.All())
	sort(t, "`network.topology`", "kind", c.Topologies.All())
}

func TestTheTablesOfSettingsAreThoseOfTheDeclarations(t *testing.T) {
	var all tables
	all.write(Default())
	if *update {
		if err := os.WriteFile(tablesFile, []byte(all.String()), 0o644); err != nil { //nolint:gosec // of this module
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(tablesFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), all.String()); diff != "" {
		t.Errorf("%s is not what go generate ./cluster/catalog writes (-file +declarations):\n%s", tablesFile, diff)
	}
}
