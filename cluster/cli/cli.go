// Package cli is the command line: every command of gradwire, for any catalog, so
// that a program with its own actors has them too.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
)

// Exit codes.
const (
	// ExitDone: everything that was asked for is done.
	ExitDone = 0
	// ExitFailed: a run failed, was interrupted, or its record could not be written; or what
	// was compared differs.
	ExitFailed = 1
	// ExitInput: the command, the plan, the data or the folder is not as it must be.
	ExitInput = 2
)

// Main runs the command of os.Args and exits. Plans can name what is in the catalog.
// A first interrupt stops cleanly, a second one at once.
func Main(c *catalog.Catalog) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	done := context.AfterFunc(ctx, func() {
		stop()
		fmt.Fprintln(os.Stderr, "stopping cleanly; interrupt again to stop at once")
	})
	code := Run(ctx, c, os.Args[1:], os.Stdout, os.Stderr)
	done()
	stop()
	os.Exit(code)
}

// Run runs one command and returns its exit code. Cancelling ctx stops it cleanly.
func Run(ctx context.Context, c *catalog.Catalog, args []string, out, errs io.Writer) int {
	root := group(&cobra.Command{
		Use:   "gradwire",
		Short: "Train a model over the network you really have",
		Long: `Gradwire runs a plan: a model, a data set, an architecture of actors and the links
between them. In virtual time hours of delay pass in seconds and a seed gives the
same bits; in real time the same actors meet the same delays.`,
		Example: `  gradwire run examples/quickstart.yaml
  gradwire run PLAN --set nodes.slow.compute.step=20ms --repeats 5
  gradwire report results/first results/second --out both.html
  gradwire plan show PLAN
  gradwire list models`,
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	root.SetFlagErrorFunc(usage)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(runCommand(c, out, errs), reportCommand(out), diffCommand(out), replayCommand(c, out), planCommand(c, out), linksCommand(c, out), listCommand(c, out),
		dataCommand(c, out, errs))
	root.AddCommand(upCommand(out, errs), identityCommand(out), nodeCommand(c, out, errs), submitCommand(out, errs), nodesCommand(out), actorsCommand(out),
		runsCommand(out), statusCommand(out), logsCommand(out), stopCommand(out), fetchCommand(out))
	return exit(root.ExecuteContext(ctx), errs)
}

// errDiffers ends a command that has told that two things differ.
var errDiffers = errors.New("they differ")

// usageError is a mistake in the command line itself.
type usageError struct{ error }

func usage(cmd *cobra.Command, err error) error {
	return usageError{fmt.Errorf("%w\nSee '%s --help'", err, cmd.CommandPath())}
}

// exit prints an error and returns the exit code that it stands for.
func exit(err error, errs io.Writer) int {
	if err == nil {
		return ExitDone
	}
	if errors.Is(err, errDiffers) {
		return ExitFailed // what differs has been told
	}
	fmt.Fprintln(errs, err)
	var input *driver.InputError
	var wrong usageError
	if errors.As(err, &input) || errors.As(err, &wrong) {
		return ExitInput
	}
	return ExitFailed
}

// exactly wants n arguments that are called what.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return usage(cmd, fmt.Errorf("%s takes %s, but %d arguments were given", cmd.CommandPath(), what, len(args)))
	}
}

// group is a command that only has commands below it.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
			return usage(cmd, fmt.Errorf("%q is not a command of %s; did you mean %s?", args[0], cmd.CommandPath(), strings.Join(like, " or ")))
		}
		return usage(cmd, fmt.Errorf("%q is not a command of %s", args[0], cmd.CommandPath()))
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}
