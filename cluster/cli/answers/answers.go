// Package answers prints what saved models say of samples.
package answers

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/cell"
	"github.com/gradwire/gradwire/cluster/report/text"
)

// WriteEvaluated prints how well the model of a run does as tables.
func WriteEvaluated(out io.Writer, e *driver.Evaluated) error {
	at := ""
	if len(e.Point) > 0 {
		at = e.Point.String() + ", "
	}
	fmt.Fprintf(out, "run %d (%sseed %d): %s of %d test samples are right\n", e.Run, at, e.Seed,
		percent(e.Test.Accuracy), e.Test.Samples)
	var workers strings.Builder
	workers.WriteString("\nworker\tsamples\taccuracy\n")
	for _, w := range e.Workers {
		fmt.Fprintf(&workers, "%s\t%d\t%s\n", w.Worker, w.Samples, percent(w.Accuracy))
	}
	err := errors.Join(writeClasses(out, &e.Test), text.Rows(out, workers.String()))
	for _, other := range e.OtherData {
		fmt.Fprintln(out, other)
	}
	return err
}

// WriteJudged prints how well a model does on the samples of a file.
func WriteJudged(out io.Writer, j *driver.JudgedFile) error {
	fmt.Fprintf(out, "%s of %d samples of %s are right\n", percent(j.Test.Accuracy), j.Test.Samples, j.Data)
	return writeClasses(out, &j.Test)
}

func writeClasses(out io.Writer, j *driver.Judged) error {
	if j.Undecided > 0 {
		fmt.Fprintf(out, "for %d of them the model yields NaN\n", j.Undecided)
	}
	var classes strings.Builder
	classes.WriteString("\nclass\tsamples\tprecision\trecall")
	for _, class := range j.PerClass {
		fmt.Fprintf(&classes, "\tas %s", class.Class)
	}
	classes.WriteString("\n")
	for i, class := range j.PerClass {
		fmt.Fprintf(&classes, "%s\t%d\t%s\t%s", class.Class, class.Samples, percent(class.Precision),
			percent(class.Recall))
		for _, n := range j.Confusion[i] {
			fmt.Fprintf(&classes, "\t%d", n)
		}
		classes.WriteString("\n")
	}
	return text.Rows(out, classes.String())
}

// percent spells a share; "-" where there is none.
func percent(share record.Float) string {
	if math.IsNaN(float64(share)) {
		return "-"
	}
	return fmt.Sprintf("%.2f%%", 100*float64(share))
}

// WritePredictions writes a table in CSV, a line for each sample.
func WritePredictions(out io.Writer, p *driver.Predicted) error {
	w := csv.NewWriter(out)
	err := w.Write([]string{"row", "class", "probability"})
	for _, of := range p.Predictions {
		probability := ""
		if of.Class != "" {
			probability = strconv.FormatFloat(float64(of.Probability), 'g', 6, 64)
		}
		err = errors.Join(err, w.Write([]string{strconv.Itoa(of.Row), cell.Text(of.Class), probability}))
	}
	w.Flush()
	return errors.Join(err, w.Error())
}
