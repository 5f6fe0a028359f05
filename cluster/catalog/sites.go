package catalog

import (
	"github.com/gradwire/gradwire/cluster/catalog/sites"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan"
)

// available reads the traces of nodes that come and go.
func (c *Catalog) available(s *Spec) error {
	return s.Plan.Traced(func(a *plan.Available) (err error) {
		at := a.Source.At("file")
		a.Devices, err = readTimes(c, at, &a.File, plan.ReadDevices)
		i := plan.Instants{At: at, Lost: "devices are never there"}
		for _, d := range a.Devices {
			i.Due = append(i.Due, d[0].On)
		}
		if len(i.Due) == 1 {
			i.Lost = "its only device is never there"
		}
		c.addInstants(i)
		return err
	})
}

// sites gives the network the links that its preset or its matrix says it has, and the nodes their
// sites.
func (c *Catalog) sites(s *Spec) (err error) {
	p := s.Plan
	n := &p.Network
	n.Implied = nil
	var m *link.Matrix
	switch {
	case n.Preset != "":
		m = link.Preset{Name: n.Preset}.Matrix()
	case n.Matrix != "":
		if m, err = readBeside(c, n.Source.At("matrix"), &n.Matrix, "matrix", link.ReadMatrix); err != nil {
			return err
		}
	default:
		return nil
	}
	n.Implied, s.Sites, err = sites.Implied(p, m)
	return err
}
