// Package display shows on a terminal, or in plain lines elsewhere, how far something is.
package display

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/gradwire/gradwire/cluster/driver"
)

// Display shows how far a plan is: a bar with the time left on a terminal, a plain
// line now and then elsewhere.
type Display struct {
	out   io.Writer
	began time.Time
	last  time.Time
	bar   *progressbar.ProgressBar // nil without a terminal
}

const (
	// mostUnfinished bounds the share shown before the end, so that it never reads 100 %.
	mostUnfinished = 0.99
	// barSteps is the number of steps of a full bar.
	barSteps = 1000
	// lineEvery is the time between two plain lines.
	lineEvery = 5 * time.Second
)

// New begins a display.
func New(out io.Writer) *Display {
	d := &Display{out: out, began: time.Now()}
	if _, ok := Screen(out).(screen); ok {
		d.bar = progressbar.NewOptions(barSteps,
			progressbar.OptionSetWriter(out), progressbar.OptionSetPredictTime(true), progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	return d
}

// screen is a terminal that knows its width.
type screen struct{ *os.File }

// Columns is the number of characters of a line.
func (s screen) Columns() int {
	if width, _, err := term.GetSize(int(s.Fd())); err == nil && width > 0 {
		return width
	}
	return 80
}

// Screen is out as a screen, if it is one.
func Screen(out io.Writer) io.Writer {
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return screen{f}
	}
	return out
}

// Progress shows how far the runs of a plan are, or a note.
func (d *Display) Progress(p driver.Progress) { d.count("runs", p) }

// Plans shows how many of several plans are done.
func (d *Display) Plans(p driver.Progress) { d.count("plans", p) }

// count shows how many are done of what is counted, or a note.
func (d *Display) count(what string, p driver.Progress) {
	if p.Note != "" {
		d.Note(p.Note)
		return
	}
	text := fmt.Sprintf("%d of %d %s", p.Done, p.Total, what)
	if p.Total == 1 {
		text = strings.TrimSuffix(text, "s")
	}
	if p.Tried < p.ToTry {
		text += fmt.Sprintf(", %d of %d to tune", p.Tried, p.ToTry)
	}
	share := p.Share
	if p.Done < p.Total { // a run whose share is 1 may not be saved yet
		share = min(share, mostUnfinished)
	}
	d.Show(text, text, share, p.Done == p.Total)
}

// Note tells something between.
func (d *Display) Note(text string) {
	if d.bar != nil {
		_ = d.bar.Clear()
	}
	fmt.Fprintln(d.out, text)
}

// Quiet leaves lines out until some time has passed.
func (d *Display) Quiet() { d.last = d.began }

// Show shows which share is done: with a title beside the bar, or with a text in a line, which it
// leaves out if there was one a moment ago and this is not the last.
func (d *Display) Show(title, text string, share float64, last bool) {
	if d.bar != nil {
		d.bar.Describe(title)
		_ = d.bar.Set(int(share * barSteps))
		return
	}
	now := time.Now()
	if !last && now.Sub(d.last) < lineEvery {
		return
	}
	d.last = now
	fmt.Fprintf(d.out, "%s, %.0f %%%s\n", text, 100*share, d.left(share))
}

// left says how much time is left, from how long the share done took.
func (d *Display) left(share float64) string {
	passed := time.Since(d.began)
	if share <= 0.01 || share >= 1 || passed < time.Second {
		return ""
	}
	left := time.Duration(float64(passed) * (1 - share) / share)
	return fmt.Sprintf(", about %v left", left.Round(time.Second))
}

// Close ends the bar.
func (d *Display) Close() {
	if d.bar != nil {
		_ = d.bar.Finish()
	}
}
