package record

import "fmt"

// MaxLinks is how many edges of a run are recorded one by one. Of a run with more, the
// edges of each sender are counted together, as a Link to Everyone.
const MaxLinks = 1 << 16

// Link counts what an edge has carried.
type Link struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Messages and Bytes were put on the edge; Lost messages of these never arrived.
	Messages int64 `json:"messages"`
	Bytes    int64 `json:"bytes"`
	// DelayAsked and DelayAchieved are means in seconds: of the delays that the link
	// drew, and of the times between sending and arrival.
	DelayAsked    float64 `json:"delay_asked_s"`
	DelayAchieved float64 `json:"delay_achieved_s"`
	Lost          int64   `json:"lost"`
	// Control and ControlBytes count the control messages, which are in none of the others.
	Control      int64 `json:"control_messages"`
	ControlBytes int64 `json:"control_bytes"`
}

var linkList = list{
	name: "links", columns: "from,to,messages,bytes,delay_asked_s,delay_achieved_s,lost,control_messages,control_bytes",
	of: func(d *Data) List { return listOf(d.Links) }, rows: linkRows,
}

// Where implements Element.
func (l *Link) Where() string { return fmt.Sprintf("from %q to %q", l.From, l.To) }

func (l *Link) check() error {
	if !within(l.DelayAsked, 0, longest) || !within(l.DelayAchieved, 0, longest) ||
		min(l.Messages, l.Bytes, l.Lost) < 0 {
		return fmt.Errorf("no link has delays %g and %g s, %d messages of %d bytes, %d lost", l.DelayAsked,
			l.DelayAchieved, l.Messages, l.Bytes, l.Lost)
	}
	return nil
}

func linkRows(w *rowWriter, _ *Run, d *Data) {
	for _, l := range d.Links {
		w.row(l.From, l.To, l.Messages, l.Bytes, l.DelayAsked, l.DelayAchieved, l.Lost, l.Control, l.ControlBytes)
	}
}
