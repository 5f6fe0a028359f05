// Package traffic turns what links count into the counters of a record, and adds those of several
// processes, of lives of theirs, and of parts of a run that was interrupted.
package traffic

import (
	"cmp"
	"slices"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/record"
)

// Of are the counters of edges between nodes of these names. Counts of nodes that there are not, as
// a state from elsewhere may have them, are left out.
func Of(names []string, counts []link.Count) (links []record.Link) {
	known := func(node int32) bool { return node >= 0 && int(node) < len(names) }
	for i := range counts {
		t := &counts[i]
		l := record.Link{
			To: record.Everyone, Messages: t.Sent, Bytes: t.SentBytes, Lost: t.Dropped, Control: t.Control,
			ControlBytes: t.ControlBytes,
		}
		switch all := t.Destination == link.Anyone; {
		case !known(t.Source), !all && !known(t.Destination):
			continue
		case !all:
			l.To = names[t.Destination]
		}
		l.From = names[t.Source]
		if t.DelayCount > 0 {
			l.DelayAsked = t.DelaySum.Seconds() / float64(t.DelayCount)
		}
		if t.Delivered > 0 {
			l.DelayAchieved = t.TookSum.Seconds() / float64(t.Delivered)
		}
		links = append(links, l)
	}
	return links
}

// Sum adds the counters of equal edges, and returns one for each, in the order of the nodes.
func Sum(names []string, lists ...[]record.Link) []record.Link {
	at := make(map[string]int, len(names))
	for i, name := range names {
		at[name] = i
	}
	links := slices.Concat(lists...)
	slices.SortStableFunc(links, func(a, b record.Link) int {
		return cmp.Or(cmp.Compare(at[a.From], at[b.From]), cmp.Compare(at[a.To], at[b.To]), cmp.Compare(a.To, b.To))
	})
	sums := links[:0]
	for _, l := range links {
		if n := len(sums) - 1; n >= 0 && sums[n].From == l.From && sums[n].To == l.To {
			sums[n] = both(sums[n], l)
		} else {
			sums = append(sums, l)
		}
	}
	return sums
}

// both is what an edge has carried in two parts.
func both(a, b record.Link) record.Link {
	mean := func(a float64, n int64, b float64, m int64) float64 {
		return (a*float64(n) + b*float64(m)) / float64(max(n+m, 1))
	}
	b.DelayAsked = mean(a.DelayAsked, a.Messages, b.DelayAsked, b.Messages)
	b.DelayAchieved = mean(a.DelayAchieved, a.Messages-a.Lost, b.DelayAchieved, b.Messages-b.Lost)
	b.Messages, b.Bytes, b.Lost = a.Messages+b.Messages, a.Bytes+b.Bytes, a.Lost+b.Lost
	b.Control, b.ControlBytes = a.Control+b.Control, a.ControlBytes+b.ControlBytes
	return b
}
