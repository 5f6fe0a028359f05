package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli/answers"
	"github.com/gradwire/gradwire/cluster/cli/display"
	"github.com/gradwire/gradwire/cluster/driver"
)

// others are flags about a file of other samples.
type others struct{ data, labels, node string }

func (o *others) add(flags *pflag.FlagSet, data string) {
	flags.StringVar(&o.data, "data", "", data)
	flags.StringVar(&o.node, "node", "", "whose model, where the run has kept one of each node")
}

// file is the file that the flags name.
func (o *others) file(cmd *cobra.Command) driver.OtherFile {
	f := driver.OtherFile{Path: o.data, Labels: o.labels}
	if o.data == "-" {
		f.Text = cmd.InOrStdin()
	}
	return f
}

func predictCommand(c *catalog.Catalog, con *console) *cobra.Command {
	var o others
	var file string
	cmd := &cobra.Command{
		Use:   "predict RECORD --data FILE",
		Short: "Say which class a saved model takes samples for",
		Long: `Say which class the model that a run has ended with takes each sample of a file for, and
with which probability: a table in CSV with a line for each sample, in their order. RECORD is the
folder DIR/runs/NNNN of a run, or its model.safetensors alone, which says all that this takes. The
file has the format of the data set that the model was trained on; labels need not be there and are
not looked at. Columns of a table with a header are found by their names. Samples are filled and
scaled as they were for training. A word that the training set has not is none of the column's. With
--out a file of that name is replaced.`,
		Example: `  gradwire predict results/first/runs/0003 --data new.csv
  gradwire predict model.safetensors --data - < new.csv > classes.csv
  gradwire predict results/first/runs/0003 --data images-idx3-ubyte.gz --format json`,
		Args: exactly(1, "the folder of one run or a model's file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.data == "" {
				return usage(cmd, errors.New("--data must name a file of samples, or - for standard input"))
			}
			p, err := driver.Predict(c, args[0], o.node, o.file(cmd))
			if err != nil {
				return err
			}
			con.remark(p.Notes())
			out := *con
			var text bytes.Buffer
			if file != "" {
				out.out = &text
			}
			err = out.print(p, func(w io.Writer) error { return answers.WritePredictions(w, p) })
			if err != nil || file == "" {
				return err
			}
			//nolint:gosec // as readable as the user's other files
			if err := os.WriteFile(file, text.Bytes(), 0o666); err != nil {
				return &driver.InputError{Err: err}
			}
			return con.say(facts{"predictions": file}, "%d predictions in %s\n", len(p.Predictions), file)
		},
	}
	o.add(cmd.Flags(), "file of samples, or - for standard input")
	cmd.Flags().StringVar(&file, "out", "", "file to write (default: standard output)")
	return cmd
}

// remark prints notes.
func (con *console) remark(notes []string) {
	for _, note := range notes {
		fmt.Fprintln(con.notes(), note)
	}
}

func evalCommand(c *catalog.Catalog, con *console) *cobra.Command {
	var o others
	cmd := &cobra.Command{
		Use:   "eval RECORD",
		Short: "Judge a saved model class by class",
		Long: `Judge the model that a recorded run has ended with: its accuracy, which classes it takes
for which, the precision and the recall of each class, by the samples that the run was
tested on; and its accuracy by the samples that each worker trained on. Samples are cut
and scaled as the record says. RECORD is the folder DIR/runs/NNNN of a run. Where --data
names a file, or - for standard input, the model is judged by the labelled samples in it
instead, which are read as 'gradwire predict' reads them, and RECORD can be a model's file.
Nothing is written.`,
		Example: `  gradwire eval results/first/runs/0003
  gradwire eval results/first/runs/0003 --data ~/datasets --format json
  gradwire eval results/first/runs/0003 --data another-site.csv`,
		Args: exactly(1, "the folder of one run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			info, err := os.Stat(o.data)
			if o.data != "" && o.data != "-" && err != nil {
				return &driver.InputError{Err: err}
			}
			if o.data == "-" || err == nil && !info.IsDir() {
				j, err := driver.EvaluateOn(c, args[0], o.node, o.file(cmd))
				if err != nil {
					return err
				}
				con.remark(j.Notes())
				return con.print(j, func(out io.Writer) error { return answers.WriteJudged(display.Screen(out), j) })
			}
			if o.labels != "" {
				return usage(cmd, errors.New("--labels is for a file of samples, which --data names"))
			}
			folder := cmp.Or(o.data, os.Getenv("GRADWIRE_DATA"))
			e, err := driver.Evaluate(args[0], o.node, driver.Options{Catalog: c, Data: folder})
			if err != nil {
				return err
			}
			return con.print(e, func(out io.Writer) error { return answers.WriteEvaluated(display.Screen(out), e) })
		},
	}
	o.add(cmd.Flags(), "folder of data sets (default: $GRADWIRE_DATA), or a file to judge by, or -")
	cmd.Flags().StringVar(&o.labels, "labels", "", "file of the labels of --data, where they are arrays to themselves")
	return cmd
}
