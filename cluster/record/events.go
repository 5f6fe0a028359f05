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
	text, err := json.Marshal(s)
	if err != nil {
		return `""` // strings always have a JSON form
	}
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
	e.line = e.encode(e.line[:0], at, number, event)
	_, e.err = e.out.Write(e.line)
}

func (e *eventWriter) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = e.out.Flush()
	}
	if e.err != nil {
		return fmt.Errorf("writing the run's events: %w", e.err)
	}
	return nil
}

// encode appends an event with the fields that its kind has.
func (e *eventWriter) encode(b []byte, at time.Duration, number int, event *actors.Event) []byte {
	b = appendFloat(append(b, `{"time_s":`...), at.Seconds())
	b = append(append(b, `,"node":`...), e.name(number)...)
	b = append(append(append(b, `,"event":"`...), event.Kind.String()...), '"')
	switch event.Kind {
	case actors.StepDone:
		b = strconv.AppendUint(append(b, `,"step":`...), event.Step, 10)
		b = strconv.AppendInt(append(b, `,"samples":`...), int64(event.Samples), 10)
		b = appendFloat(append(b, `,"loss":`...), event.Loss)
	case actors.UpdateApplied:
		b = append(append(b, `,"origin":`...), e.name(event.Origin)...)
		b = strconv.AppendUint(append(b, `,"version":`...), event.Version, 10)
		b = strconv.AppendUint(append(b, `,"staleness":`...), event.Staleness, 10)
	case actors.Waited:
		b = append(append(b, `,"cause":`...), quote(event.Cause)...)
		b = appendFloat(append(b, `,"duration_s":`...), event.Duration.Seconds())
	case actors.SnapshotTaken:
		b = strconv.AppendUint(append(b, `,"evaluation":`...), event.Evaluation, 10)
		b = strconv.AppendUint(append(b, `,"step":`...), event.Step, 10)
		b = appendFloat(append(b, `,"epoch":`...), event.Epoch)
	case actors.Evaluated:
		b = append(append(b, `,"origin":`...), e.name(event.Origin)...)
		b = strconv.AppendUint(append(b, `,"evaluation":`...), event.Evaluation, 10)
		b = appendFloat(append(b, `,"at_s":`...), event.At.Seconds())
		b = strconv.AppendUint(append(b, `,"step":`...), event.Step, 10)
		b = appendFloat(append(b, `,"epoch":`...), event.Epoch)
		b = appendFloat(append(b, `,"accuracy":`...), event.Accuracy)
		b = appendFloat(append(b, `,"loss":`...), event.Loss)
	case actors.Summarized:
		b = strconv.AppendUint(append(b, `,"evaluation":`...), event.Evaluation, 10)
		b = appendFloat(append(b, `,"at_s":`...), event.At.Seconds())
		b = strconv.AppendUint(append(b, `,"step":`...), event.Step, 10)
		b = appendFloat(append(b, `,"epoch":`...), event.Epoch)
		b = appendFloat(append(b, `,"accuracy":`...), event.Accuracy)
		b = appendFloat(append(b, `,"loss":`...), event.Loss)
		b = encodeFigures(b, event.Figures)
	case actors.Selected:
		b = append(append(b, `,"origin":`...), e.name(event.Origin)...)
	case actors.Measured:
		b = append(append(b, `,"name":`...), quote(event.Name)...)
		b = appendFloat(append(b, `,"value":`...), event.Value)
	}
	return append(b, "}\n"...)
}

// encodeFigures appends the four accuracies of an evaluation, and of how many models they are.
func encodeFigures(b []byte, f *actors.Figures) []byte {
	b = strconv.AppendInt(append(b, `,"models":`...), int64(f.Models), 10)
	b = appendFloat(append(b, `,"average_model":`...), f.AverageModel.Accuracy)
	b = appendFloat(append(b, `,"mean":`...), f.Mean.Accuracy)
	b = appendFloat(append(b, `,"all":`...), f.All.Accuracy)
	return appendFloat(append(b, `,"any":`...), f.Any.Accuracy)
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
