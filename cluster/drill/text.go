package drill

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/cluster/faults"
	"github.com/gradwire/gradwire/cluster/report/text"
)

// maxCosts is how many faults the table has a row for; drill.json has all.
const maxCosts = 50

// Write writes the reports, below a line that counts them where there is a sweep. It keeps to the
// width of w as [text.Rows] does.
func (d *Drill) Write(w io.Writer) error {
	broken := 0
	for _, r := range d.Points {
		if len(r.Broken()) > 0 {
			broken++
		}
	}
	if d.Swept {
		head := fmt.Sprintf("Points drilled: %d. Invariants broke at %d of them.", len(d.Points), broken)
		if d.Unhurt > 0 {
			head += fmt.Sprintf(" Not drilled: %d, which have no faults.", d.Unhurt)
		}
		if _, err := fmt.Fprintln(w, head); err != nil {
			return err
		}
	}
	for i, r := range d.Points {
		if d.Swept {
			if _, err := fmt.Fprintf(w, "\npoint %d: %s\n\n", i+1, r.Point); err != nil {
				return err
			}
		}
		if err := r.Write(w); err != nil {
			return err
		}
	}
	plots := filepath.Join(d.Dir, "drill.png")
	if d.Swept {
		plots = filepath.Join(d.Dir, "drill-1.png")
	}
	if len(d.Points) > 1 {
		plots += " and so on"
	}
	return text.Rows(w, fmt.Sprintf("\nrecord in %s\nplot   in %s, .svg\n", filepath.Join(d.Dir, "drill.json"), plots))
}

// Write writes the report as tables: a row for each fault, sums, and the invariants. It keeps to
// the width of w as [text.Rows] does.
func (r *Report) Write(w io.Writer) error {
	var b strings.Builder
	b.WriteString("fault\tnoticed, s\tserved, s\tregained, s\tsamples fewer\tupdates fewer\tpushes lost more\t" +
		"repeats more\tMB more\n")
	met := slices.IndexFunc(r.Faults, func(c Cost) bool { return c.AfterEnd }) // faults are in order of time
	if met < 0 {
		met = len(r.Faults)
	}
	for i := range r.Faults[:met] {
		c := &r.Faults[i]
		if i == maxCosts {
			fmt.Fprintf(&b, "and %d more\n", met-i)
			break
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%d\t%.3f\n", faults.Describe(&c.Fault), after(c.Noticed, "–"),
			after(c.Served, r.unserved(c)), after(c.Regained, "never"), c.Samples, c.Updates, number(c.Pushes),
			c.Repeats, float64(c.Bytes)/1e6)
	}
	if err := text.Rows(w, b.String()); err != nil {
		return err
	}
	if err := text.Rows(w, r.remarks(met)); err != nil {
		return err
	}
	b.Reset()
	b.WriteString("\n\taccuracy, %\tsteps\tmessages\trepeats\tMB\tdropped\n")
	for _, run := range []struct {
		name string
		Sums
	}{{"with faults", r.Run}, {"undisturbed", r.Undisturbed}} {
		fmt.Fprintf(&b, "%s\t%.2f\t%d\t%d\t%d\t%.3f\t%d\n", run.name, float64(run.Accuracy)*100, run.Steps,
			run.Messages, run.Repeats, float64(run.Bytes)/1e6, run.Dropped)
	}
	if err := text.Rows(w, b.String()); err != nil {
		return err
	}
	b.Reset()
	g := &r.Goodput
	fmt.Fprintf(&b, "goodput %.1f %%: %d samples count of %d undisturbed, %d were lost, in %.4g s\n\n", g.Share*100,
		g.Counted, g.Undisturbed, g.Lost, r.End)
	for _, v := range r.Invariants {
		state := "held"
		switch {
		case v.Broken != "":
			state = "BROKEN"
		case !v.Watched:
			state = "not watched"
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\n", v.Name, state, v.Doc)
		if v.Broken != "" {
			fmt.Fprintf(&b, "\t\t%s\n", v.Broken)
		}
	}
	return text.Rows(w, b.String())
}

// remarks returns the lines below the table of faults. The table lists the first met faults, which
// the run met.
func (r *Report) remarks(met int) (text string) {
	if met > 1 {
		text = "A fault's costs are counted until the next fault; where faults overlap, the later has them.\n"
	}
	if late := len(r.Faults) - met; late > 0 {
		text += fmt.Sprintf("Not listed: %d more faults, due after the end of the run at %.4g s.\n", late, r.End)
	}
	return text
}

// unserved is the word for a fault after which nodes did not serve again.
func (r *Report) unserved(c *Cost) string {
	if c.Until >= r.End {
		return "–" // it is not over
	}
	return "never"
}

// after is a time in seconds, or a word for none.
func after(seconds *float64, none string) string {
	if seconds == nil {
		return none
	}
	if *seconds == 0 {
		return "0"
	}
	return fmt.Sprintf("%.3g", *seconds)
}

// number is a count, or a dash for none.
func number(n *int64) string {
	if n == nil {
		return "–"
	}
	return strconv.FormatInt(*n, 10)
}
