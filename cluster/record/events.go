package record

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/gradwire/gradwire/actors"
)

// eventBuffer is how many bytes of events are held back at most.
const eventBuffer = 64 << 10

// eventWriter writes events as lines of JSON.
type eventWriter struct {
	names []string // quoted, by number

	mu   sync.Mutex
	out  *bufio.Writer
	line []byte
	err  error
}

func newEventWriter(w io.Writer, nodes []string) *eventWriter {
	e := &eventWriter{out: bufio.NewWriterSize(w, eventBuffer), names: make([]string, len(nodes))}
	for i, name := range nodes {
		e.names[i] = quote(name)
	}
	return e
}

// quote writes a string in JSON.
func quote(s string) string {
	text, _ := json.Marshal(s) // strings always have a JSON form
	return string(text)
}

// name returns the quoted name of a node; those outside the plan's are the coordinator.
func (e *eventWriter) name(number int) string {
	if number < 0 || number >= len(e.names) {
		return `"coordinator"`
	}
	return e.names[number]
}

func (e *eventWriter) write(at time.Duration, number int, event *actors.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return
	}
	e.encode(at, number, event)
	_, e.err = e.out.Write(e.line)
}

// flush writes everything out, and calls a function then.
func (e *eventWriter) flush(then func()) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = e.out.Flush()
	}
	then()
	if e.err != nil {
		return fmt.Errorf("writing the run's events: %w", e.err)
	}
	return nil
}

// encode writes the line of an event, with the fields that its kind has.
func (e *eventWriter) encode(at time.Duration, number int, event *actors.Event) {
	e.line = appendFloat(append(e.line[:0], `{"time_s":`...), at.Seconds())
	e.text("node", e.name(number))
	e.line = append(append(append(e.line, `,"event":"`...), event.Kind.String()...), '"')
	switch event.Kind {
	case actors.StepDone:
		e.count("step", event.Step)
		e.count("samples", uint64(max(event.Samples, 0)))
		e.number("loss", event.Loss)
	case actors.UpdateApplied:
		e.text("origin", e.name(event.Origin))
		e.count("version", event.Version)
		e.count("staleness", event.Staleness)
		if event.Push > 0 {
			e.count("shard", uint64(event.Shard))
			e.count("life", event.Life)
			e.count("push", event.Push)
		}
	case actors.Waited:
		e.text("cause", quote(event.Cause))
		e.number("duration_s", event.Duration.Seconds())
	case actors.SnapshotTaken:
		e.count("evaluation", event.Evaluation)
		e.count("step", event.Step)
		e.number("epoch", event.Epoch)
	case actors.Evaluated:
		e.text("origin", e.name(event.Origin))
		e.verdict(event)
	case actors.Summarized:
		e.verdict(event)
		e.count("models", uint64(event.Figures.Models))
		e.number("average_model", event.Figures.AverageModel.Accuracy)
		e.number("mean", event.Figures.Mean.Accuracy)
		e.number("all", event.Figures.All.Accuracy)
		e.number("any", event.Figures.Any.Accuracy)
	case actors.Merged:
		e.text("origin", e.name(event.Origin))
		e.count("step", event.Step)
	case actors.Selected:
		e.text("origin", e.name(event.Origin))
	case actors.Measured:
		e.text("name", quote(event.Name))
		e.number("value", event.Value)
	}
	e.line = append(e.line, "}\n"...)
}

func (e *eventWriter) verdict(event *actors.Event) {
	e.count("evaluation", event.Evaluation)
	e.number("at_s", event.At.Seconds())
	e.count("step", event.Step)
	e.number("epoch", event.Epoch)
	e.number("accuracy", event.Accuracy)
	e.number("loss", event.Loss)
	if event.Samples > 0 {
		e.count("of_samples", uint64(event.Samples))
	}
}

func (e *eventWriter) key(key string) {
	e.line = append(append(append(e.line, `,"`...), key...), `":`...)
}

// text writes a text that is quoted already.
func (e *eventWriter) text(key, quoted string) {
	e.key(key)
	e.line = append(e.line, quoted...)
}

func (e *eventWriter) count(key string, v uint64) {
	e.key(key)
	e.line = strconv.AppendUint(e.line, v, 10)
}

func (e *eventWriter) number(key string, v float64) {
	e.key(key)
	e.line = appendFloat(e.line, v)
}

// appendFloat writes v as Float does.
func appendFloat(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, "null"...)
	case math.IsInf(v, 1):
		return append(b, `"Inf"`...)
	case math.IsInf(v, -1):
		return append(b, `"-Inf"`...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}
