package catalog

import (
	"fmt"
	"slices"
	"time"

	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// addLinkRates adds the processes that a rate can be.
func addLinkRates(c *Catalog) {
	r := &c.LinkRates
	type walk struct {
		First []unit.Throughput `plan:"first,omitzero" doc:"where the walk begins: drawn from this range, [low, high]; default: min to max"`
		rate.RandomWalk
	}
	r.Add(Define("random-walk", "uniform at first, shifted by up to ±step after every interval",
		func() walk { return walk{RandomWalk: rate.RandomWalk{Every: time.Second}} },
		func(_ *Catalog, s *walk) (rate.Rate, error) {
			if s.First == nil {
				s.First = []unit.Throughput{unit.Throughput(s.Min), unit.Throughput(s.Max)}
			}
			if len(s.First) != 2 {
				return nil, About("first", fmt.Errorf("%d rates; accepted are two, such as [1 Mbit/s, 5 Mbit/s]",
					len(s.First)))
			}
			s.FirstMin, s.FirstMax = float64(s.First[0]), float64(s.First[1])
			return s.RandomWalk, nil
		}))
	type trace struct {
		File   string `plan:"file,required" doc:"beside the plan unless its path is absolute"`
		Format string `plan:"format" words:"csv|mahimahi" doc:"csv: a header time_s,rate_mbps (or ms, us; bps, kbps, gbps), then a point a line, whose rate holds until the next one's; mahimahi: a line for each packet of 1,500 bytes that can leave, in milliseconds, and again from the start after the last"`
		rate.Trace
		Source *syntax.Node `plan:",node"`
	}
	r.Add(Define("trace", "measured rates from a file beside the plan",
		func() trace { return trace{Format: "csv"} },
		func(c *Catalog, s *trace) (_ rate.Rate, err error) {
			at := s.Source.At("file")
			if s.Format == "mahimahi" {
				if given, ok := s.Source.Get("repeat"); ok && given.Text == "false" {
					return nil, About("repeat",
						fmt.Errorf("a trace of Mahimahi starts over after its end; leave this out"))
				}
				s.Repeat = true
				o := &rate.Opportunities{Anywhere: s.Anywhere}
				o.At, err = readTimes(c, at, &s.File, rate.ReadOpportunities)
				return o, err
			}
			if s.Points, err = readTimes(c, at, &s.File, rate.ReadTrace); err == nil {
				c.addTrace(at, s.Points[0].At)
			}
			return rate.NewTrace(s.Trace), err
		}))
	r.Declare("quantiles", rate.Quantiles{Length: 15 * time.Minute},
		"drawn for every second from a distribution with this mean and these quantiles")
	addMobileLines(r)
}

func isMobileLine(name string) bool {
	return slices.ContainsFunc(rate.Mobile(), func(l rate.Line) bool { return l.Name == name })
}

// addMobileLines adds the lines that were measured.
func addMobileLines(r *Kinds[rate.Rate]) {
	type mobile struct {
		Line   string       `plan:"line,required" doc:"whose quantiles; gradwire list networks shows them"`
		Source *syntax.Node `plan:",node"`
	}
	r.Add(Define("mobile", "a mobile line that was measured: its quantiles and silences",
		func() mobile { return mobile{} },
		func(_ *Catalog, s *mobile) (rate.Rate, error) {
			var names []string
			for _, l := range rate.Mobile() {
				if l.Name == s.Line {
					return l.Quantiles, nil
				}
				names = append(names, l.Name)
			}
			return nil, syntax.UnknownWord(s.Source.At("line"), "mobile line", names)
		}))
}
