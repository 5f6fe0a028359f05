package catalog

import (
	"fmt"
	"time"

	"github.com/gradwire/gradwire/actors/gossip"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// gossipSettings are those of the architecture without a server. Every and the choice's
// share are left out where the plan gives the other one of the two.
type gossipSettings struct {
	Every    int           `plan:"every,omitzero" range:"1.." doc:"steps between two exchanges"`
	Period   unit.Duration `plan:"period,omitzero" doc:"time between two exchanges, in place of every"`
	Choose   gossipChoice  `plan:"choose" doc:"with which neighbours models are exchanged"`
	Exchange string        `plan:"exchange" words:"push|pull|push-pull" doc:"who sends: the peer, the chosen neighbours, or both"`
	Wait     bool          `plan:"wait" doc:"whether a step waits until the exchange is over; not with a period"`
	Merge    string        `plan:"merge" words:"mean|age" doc:"how models that arrive are averaged: half and half, or in proportion to what they have seen"`
	Moved    float64       `plan:"moved" range:"0.." doc:"only what has moved by more than this (Euclidean norm of the parameters) is sent again; 0 sends always"`
	Lead     *int          `plan:"lead" range:"0.." doc:"steps that no peer may be ahead of the slowest; default: no bound"`
	Source   *syntax.Node  `plan:",node"`
}

type gossipChoice struct {
	Kind   string        `plan:"kind" words:"random|latency" doc:"random: all alike; latency: near ones more often"`
	Share  unit.Fraction `plan:"share,omitzero" doc:"of the neighbours that are chosen"`
	Count  int           `plan:"count,omitzero" range:"1.." doc:"neighbours that are chosen, in place of share"`
	Floor  unit.Fraction `plan:"floor,omitzero" doc:"no neighbour counts for less than this times the mean; with latency"`
	Source *syntax.Node  `plan:",node"`
}

func addGossip(c *Catalog) {
	c.Architectures.Add(Define("gossip", "peers without a server exchange their models with some of their neighbours, every so many steps or with a period",
		func() gossipSettings {
			return gossipSettings{
				Every: 1, Choose: gossipChoice{Kind: string(gossip.Random), Share: 0.5},
				Exchange: string(gossip.Push), Wait: true, Merge: "mean",
			}
		},
		func(_ *Catalog, s *gossipSettings) (train.Architecture, error) { return s.architecture() }))
}

// architecture makes what the settings describe.
func (s *gossipSettings) architecture() (train.Architecture, error) {
	if err := s.when(); err != nil {
		return nil, err
	}
	choice, err := s.Choose.choice()
	if err != nil {
		return nil, err
	}
	a := gossip.Architecture{
		Every: s.Every, Period: time.Duration(s.Period), Choice: choice, Exchange: gossip.Exchange(s.Exchange),
		Wait: s.Wait, Moved: s.Moved, Lead: lead(s.Lead),
	}
	switch s.Merge {
	case "mean":
		a.Merge = gossip.Mean{}
	case "age":
		a.Merge = gossip.Age{}
	}
	return a, a.Validate()
}

// when settles what makes an exchange due.
func (s *gossipSettings) when() error {
	_, every := s.Source.Get("every")
	_, period := s.Source.Get("period")
	_, wait := s.Source.Get("wait")
	switch {
	case every && period:
		return syntax.Errorf(s.Source.At("period"), "exchanges happen either every so many steps or with a period: one of every and period must go")
	case period && s.Period <= 0:
		return syntax.Errorf(s.Source.At("period"), "a period of %v; accepted is a positive time", s.Period)
	case period && wait && s.Wait:
		return syntax.Errorf(s.Source.At("wait"), "no step can wait for exchanges with a period; accepted is false")
	case period:
		s.Every, s.Wait = 0, false
	}
	return nil
}

// choice makes the choice of neighbours.
func (s *gossipChoice) choice() (gossip.Choice, error) {
	_, share := s.Source.Get("share")
	_, count := s.Source.Get("count")
	by := gossip.By(s.Kind)
	switch {
	case share && count:
		return gossip.Choice{}, syntax.Errorf(s.Source.At("count"), "how many neighbours are chosen is given by a share or by a count: one of the two must go")
	case share && s.Share == 0:
		return gossip.Choice{}, syntax.Errorf(s.Source.At("share"), "a share of %v of the neighbours; accepted is more than 0%%", s.Share)
	case by == gossip.Random && s.Floor > 0:
		return gossip.Choice{}, syntax.Errorf(s.Source.At("floor"), "a floor is for a choice by %s; by %s all neighbours have the same weight", gossip.Latency, gossip.Random)
	case count:
		s.Share = 0
	}
	choice := gossip.Choice{By: by, Count: s.Count, Share: float64(s.Share), Floor: float64(s.Floor)}
	if err := choice.Validate(); err != nil {
		return choice, fmt.Errorf("choose: %w", err)
	}
	return choice, nil
}
