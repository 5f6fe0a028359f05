package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
)

func replayCommand(c *catalog.Catalog, con *console) *cobra.Command {
	o := driver.Options{Catalog: c}
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
			o.Data = cmp.Or(o.Data, os.Getenv("GRADWIRE_DATA"))
			r, err := driver.Replay(cmd.Context(), args[0], o)
			if errors.Is(err, context.Canceled) {
				return errors.New("interrupted: the run was not replayed to its end")
			}
			if err != nil {
				return err
			}
			err = con.print(r, func(out io.Writer) error { return writeReplay(out, r) })
			if err != nil || r.Equal && r.SameBuild {
				return err
			}
			return errDiffers
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Data, "data", "", folderUsage)
	flags.BoolVar(&o.Strict, "strict", false, "check every message on its way; slow, same digest")
	return cmd
}

// writeReplay says whether the digests are equal.
func writeReplay(out io.Writer, r *driver.Replayed) error {
	at := ""
	if len(r.Point) > 0 {
		at = r.Point.String() + ", "
	}
	verdict := "the digests are equal"
	if !r.Equal {
		verdict = "the digests differ"
	}
	text := fmt.Sprintf("run %d (%sseed %d)\nrecorded %s\nreplayed %s\n%s\n",
		r.Run, at, r.Seed, r.Recorded, r.Digest, verdict)
	if !r.SameBuild {
		text += fmt.Sprintf("the builds differ, so that this proves nothing:\nrecorded %v\nreplayed %v\n",
			r.RecordedBuild, r.Build)
	}
	for _, other := range r.OtherData {
		text += other + "\n"
	}
	_, err := io.WriteString(out, text)
	return err
}
