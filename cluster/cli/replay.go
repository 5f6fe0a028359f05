package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
)

func replayCommand(c *catalog.Catalog, out io.Writer) *cobra.Command {
	o := driver.Options{Catalog: c}
	var format string
	cmd := &cobra.Command{
		Use:   "replay DIR/runs/NNNN",
		Short: "Run again from the record and prove the digest",
		Long: `Run a recorded run again: by the plan, the point and the seed in the record. The
digests, of every message and of the final parameters, must be the same. Nothing is
written. Runs of other clocks than the virtual one have no digest and cannot be
replayed.

The exit code is 0 if the digests are the same and so are the builds, 1 if not, 2 for bad input.`,
		Example: `  gradwire replay results/first/runs/0003
  gradwire replay results/first/runs/0003 --data ~/datasets --format json`,
		Args: exactly(1, "the folder of one run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(cmd, format); err != nil {
				return err
			}
			if o.Data == "" {
				o.Data = os.Getenv("GRADWIRE_DATA")
			}
			r, err := driver.Replay(cmd.Context(), args[0], o)
			if errors.Is(err, context.Canceled) {
				return errors.New("interrupted: the run was not replayed to its end")
			}
			if err != nil {
				return err
			}
			if format == "json" {
				err = printJSON(out, r)
			} else {
				err = tellReplay(out, r)
			}
			if err == nil && (!r.Equal || !r.SameBuild) {
				err = errDiffers
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Data, "data", "", "folder of data sets (default: $GRADWIRE_DATA)")
	flags.BoolVar(&o.Strict, "strict", false, "check every message on its way; slow, same digest")
	flags.StringVar(&format, "format", "text", "text or json")
	return cmd
}

func tellReplay(out io.Writer, r *driver.Replayed) error {
	at := ""
	if len(r.Point) > 0 {
		at = r.Point.String() + ", "
	}
	verdict := "the digests are equal"
	if !r.Equal {
		verdict = "the digests differ"
	}
	_, err := fmt.Fprintf(out, "run %d (%sseed %d)\nrecorded %s\nreplayed %s\n%s\n",
		r.Run, at, r.Seed, r.Recorded, r.Digest, verdict)
	if err == nil && !r.SameBuild {
		_, err = fmt.Fprintf(out, "the builds differ, so that this proves nothing:\nrecorded %+v\nreplayed %+v\n",
			r.RecordedBuild, r.Build)
	}
	for _, other := range r.OtherData {
		if err == nil {
			_, err = fmt.Fprintln(out, other)
		}
	}
	return err
}
