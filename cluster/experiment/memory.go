package experiment

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/wire"
)

// Check says what is wrong with the plan, if anything, as far as that can be told without data:
// every name at every point of its sweep, and whether messages and this machine's memory can hold
// the models. A nil catalog stands for catalog.Default().
func (p *Plan) Check(c *catalog.Catalog) error {
	_, err := p.Estimate(c)
	return err
}

// sendable returns an error about a model that no message can carry.
func sendable(s *catalog.Spec) error {
	if n := s.Model.Params(); n > wire.MaxValues {
		return syntax.Errorf(s.ModelSection, "the model has %d parameters, %s; a message carries at most %d, %s", n,
			inBytes(4*float64(n)), wire.MaxValues, inBytes(4*wire.MaxValues))
	}
	return nil
}

// need is the least memory in bytes that the models of one run take: those that nodes hold, and for
// each node that trains the one that it computes on and its gradient.
func need(s *catalog.Spec) float64 {
	vectors := 1 + held(s.Roles) // with the initial one
	for i, r := range s.Roles {
		if r.Trains {
			vectors += 1 + teamVectors(s, i)
		}
	}
	return 4 * float64(vectors) * float64(s.Model.Params())
}

// held is how many models nodes of these roles hold. Those of a joint role have one among them.
func held(roles []train.Role) (n int) {
	joint := map[string]bool{}
	for _, r := range roles {
		if r.Holds && !joint[r.Name] {
			n++
			joint[r.Name] = r.Joint
		}
	}
	return n
}

// teamVectors is how many vectors as long as a model the threads of a node have: the one that they
// share, and what each has read and its gradient; none where there is one thread.
func teamVectors(s *catalog.Spec, node int) int {
	if n := s.Plan.Nodes[node].Compute.Threads; n > 1 {
		return 1 + 2*n
	}
	return 0
}

// affordable returns an error about the first point whose models do not fit into memory of the
// given size in bytes; 0 stands for a size that is not known.
func affordable(points []Point, bytes float64) error {
	for i := range points {
		s := points[i].Spec
		if n := need(s); bytes > 0 && n > bytes {
			err := syntax.Errorf(s.ModelSection,
				"%d nodes with models of %d parameters need %s of memory or more, and this machine has %s; give the "+
					"plan fewer nodes or a smaller model",
				len(s.Roles), s.Model.Params(), inBytes(n), inBytes(bytes))
			return refusal.Input(points[i].about(err))
		}
	}
	return nil
}

// inBytes writes a size for people.
func inBytes(n float64) string {
	for _, unit := range []string{"B", "kB", "MB", "GB"} {
		if n < 1000 {
			return strconv.FormatFloat(n, 'g', 3, 64) + " " + unit
		}
		n /= 1000
	}
	return strconv.FormatFloat(n, 'f', 1, 64) + " TB"
}

// memory is how many bytes this machine has, or lets this program have; 0 where the system does not
// say so.
func memory() float64 {
	total := 0.0
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		total = memTotal(text)
	}
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if limit, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err == nil &&
			(total == 0 || limit < total) {
			total = limit
		}
	}
	return total
}

// memTotal reads the line MemTotal of Linux's list, in bytes; 0 if there is none.
func memTotal(text []byte) float64 {
	_, after, _ := strings.Cut(string(text), "MemTotal:")
	var kilobytes float64
	if n, _ := fmt.Sscanf(after, "%f kB", &kilobytes); n == 0 {
		return 0
	}
	return 1024 * kilobytes
}
