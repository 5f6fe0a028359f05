// Package cli provides the command line: every command of gradwire, for any catalog. A program with
// its own actors has them too.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli/bundled"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/store"
)

// Exit codes.
const (
	// ExitDone: everything that was asked for is done.
	ExitDone = 0
	// ExitFailed: a run failed, was interrupted, or its record could not be written; or what
	// was compared differs.
	ExitFailed = 1
	// ExitDegraded: everything ran to its end, but a run lost state or had nodes that stood still.
	ExitDegraded = 3
	// ExitInput: the command, the plan, the data or the folder is not as it must be.
	ExitInput = 2
	// ExitTryAgain: a process cannot do it now, but perhaps later; EX_TEMPFAIL of sysexits.h.
	ExitTryAgain = 75
)

// Program is a command line: every command, for a catalog.
type Program struct {
	// Name is what the program is called in its help, messages and completion. Default: the
	// name of the file that was started.
	Name string
	// Catalog is what plans can name.
	Catalog *catalog.Catalog
	// Examples are plans that the program brings along, with the files that they name. Every
	// command that takes a plan takes their names: the path without .yaml, and X for X/plan.yaml.
	// Default: none.
	Examples fs.FS
	// In is what a plan called - is read from. Default: standard input.
	In io.Reader
}

// Main runs the command of os.Args and exits. Plans can name what is in the catalog.
// A first interrupt stops cleanly, a second one at once.
func Main(c *catalog.Catalog) { Program{Catalog: c}.Main() }

// Main is the function Main for a program that may have another name.
func (p Program) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	con := p.console(os.Stdout, os.Stderr)
	done := context.AfterFunc(ctx, func() {
		stop()
		fmt.Fprintln(os.Stderr, "stopping cleanly; interrupt again to stop at once")
		time.Sleep(mostStopping)
		switch dir := con.record.Load(); {
		case con.leaves.Load():
			time.Sleep(mostLeaving - mostStopping)
		case dir != nil && store.IsRemote(*dir):
			time.Sleep(mostUploading - mostStopping)
		}
		fmt.Fprintln(os.Stderr, con.kept())
		os.Exit(ExitFailed)
	})
	code := p.run(ctx, con, os.Args[1:])
	done()
	stop()
	os.Exit(code)
}

// mostStopping is how long a command may take to stop, apart from those that leave a cluster.
const mostStopping = 700 * time.Millisecond

// mostUploading bounds the stop of a command that also uploads a record.
const mostUploading = mostStopping + time.Second

// mostLeaving is how long those may take: what blocks in them is left behind.
const mostLeaving = 20 * time.Second

// Run runs one command and returns its exit code. Cancelling ctx stops it cleanly.
func (p Program) Run(ctx context.Context, args []string, out, errs io.Writer) int {
	return p.run(ctx, p.console(out, errs), args)
}

func (p Program) run(ctx context.Context, con *console, args []string) int {
	root := p.tree(con)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = con.helped
	}
	if asked(args) {
		con.format = "json" // also of an error about the flags before it
	}
	return con.exit(err, naming(root))
}

// Commands makes the tree of all commands, which print to out and errs. Run runs them; a program
// that writes pages about them walks the tree.
func (p Program) Commands(out, errs io.Writer) *cobra.Command {
	return p.tree(p.console(out, errs))
}

func (p Program) console(out, errs io.Writer) *console {
	return &console{out: out, errs: errs, examples: bundled.Plans{FS: p.Examples}, leaves: new(atomic.Bool),
		record: new(atomic.Pointer[string])}
}

// kept says which work remains of a command that did not stop in time.
func (con *console) kept() string {
	dir := con.record.Load()
	switch {
	case con.leaves.Load():
		return "stopped; finished work is kept"
	case dir != nil:
		return "stopped; finished runs are kept; go on with --continue " + *dir
	}
	return "stopped; nothing was finished, and there is nothing to continue"
}

func (p Program) tree(con *console) *cobra.Command {
	c := p.Catalog
	root := group(&cobra.Command{
		Use:   "gradwire",
		Short: "Train a model over the network you really have",
		Long: `Gradwire runs a plan: a model, a data set, an architecture of actors and the links
between them. In virtual time hours of delay pass in seconds and a seed gives the
same bits; in real time the same actors meet the same delays.`,
		Example: `  gradwire run examples/quickstart.yaml
  gradwire run PLAN --set nodes.slow.compute.step=20ms --repeats 5
  gradwire report results/first results/second --out both.html
  gradwire plan new --architecture gossip --out PLAN
  gradwire list models
  gradwire --version`,
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.SetIn(p.In)
	root.SetOut(con.out)
	root.SetErr(con.errs)
	root.SetFlagErrorFunc(flagUsage)
	con.add(root)
	root.AddCommand(runCommand(c, con), drillCommand(c, con), reportCommand(c, con), diffCommand(con),
		replayCommand(c, con),
		evalCommand(c, con), predictCommand(c, con), planCommand(c, con), linksCommand(c, con), listCommand(c, con),
		dataCommand(c, con))
	root.AddCommand(upCommand(con), identityCommand(con), nodeCommand(c, con), submitCommand(con),
		nodesCommand(con), actorsCommand(con), submissionsCommand(con), statusCommand(con), logsCommand(con),
		stopCommand(con), fetchCommand(con), removeCommand(con), clusterCommand(con))
	addVersion(root, con)
	addExamples(root, con.examples, con)
	addLibraryCommands(root, con)
	rename(root, cmp.Or(p.Name, strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")))
	complete(root, c, con.examples)
	openStores(root, con)
	return root
}

// addLibraryCommands adds help and completion, which cobra provides, with examples. Both help and --help
// refuse a command that does not exist.
func addLibraryCommands(root *cobra.Command, con *console) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
			con.helped = unknownCommand(cmd, words)
			return
		}
		help(cmd, args)
	})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Example = "  gradwire help plan new"
			cmd.Run, cmd.RunE = nil, helpAbout
		case "completion":
			cmd.Example = "  source <(gradwire completion bash)\n" +
				"  gradwire completion fish > ~/.config/fish/completions/gradwire.fish"
			group(cmd)
			for _, shell := range cmd.Commands() {
				shell.Args = noArguments
				shell.Example = "  gradwire completion " + shell.Name()
			}
		}
	}
}

// helpAbout prints the help of the command that the words name.
func helpAbout(help *cobra.Command, words []string) error {
	cmd, rest, err := help.Root().Find(words)
	switch {
	case err == nil && len(rest) == 0:
		cmd.InitDefaultHelpFlag()
		return cmd.Help()
	case cmd == nil || cmd.HasSubCommands():
		return unknownCommand(cmp.Or(cmd, help.Root()), rest)
	}
	return usage(cmd, fmt.Errorf("%s has no command %q below it; 'gradwire help %s' describes it", cmd.CommandPath(),
		rest[0], strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")))
}

// errDiffers ends a command that has printed where two things differ.
var errDiffers = errors.New("they differ")

// errDegraded ends a command that has printed which runs are degraded.
var errDegraded = errors.New("a run is degraded")

// usageError is a mistake in the command line itself.
type usageError struct{ error }

func usage(cmd *cobra.Command, err error) error {
	return usageError{fmt.Errorf("%w\nSee '%s --help'", err, cmd.CommandPath())}
}

// flagUsage is the error about a flag, with the one that was likely meant.
func flagUsage(cmd *cobra.Command, err error) error {
	if invalid := new(pflag.InvalidValueError); errors.As(err, &invalid) {
		return usage(cmd, badValue(invalid, err))
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return usage(cmd, err)
	}
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return unknownCommand(cmd, words) // the flag is that command's
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, "--"+f.Name)
		}
	})
	if unknown.GetSpecifiedShortnames() != "" {
		return usage(cmd, err)
	}
	name := unknown.GetSpecifiedName()
	return usage(cmd, fmt.Errorf("unknown flag --%s%s", name, syntax.Suggestion("--"+name, known)))
}

// badValue returns the error about the value of a flag. It says what is accepted; Go's parser does not.
func badValue(invalid *pflag.InvalidValueError, err error) error {
	accepted, known := map[string]string{
		"int": "a whole number", "uint64": "a whole number, 0 or more", "float64": "a number",
		"bool": "true or false", "duration": "a duration such as 5s or 2m",
	}[invalid.GetFlag().Value.Type()]
	if !known {
		return err
	}
	return fmt.Errorf("--%s %s; accepted is %s", invalid.GetFlag().Name, invalid.GetValue(), accepted)
}

// rename calls the program by its name in every text of the tree.
func rename(root *cobra.Command, name string) {
	word := regexp.MustCompile(`\bgradwire\b`)
	named := func(text string) string { return word.ReplaceAllLiteralString(text, name) }
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Short, cmd.Long, cmd.Example = named(cmd.Short), named(cmd.Long), named(cmd.Example)
		cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = named(f.Usage) })
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
	root.Use = name
}

// naming replaces gradwire by the program's name where a message names one of the commands; the
// message may come from a package that knows no other name. Other words, such as paths, stay.
func naming(root *cobra.Command) func(text string) string {
	words := []string{"--version"}
	for _, cmd := range root.Commands() {
		words = append(append(words, cmd.Name()), cmd.Aliases...)
	}
	command := regexp.MustCompile(`(^|[^\w./-])gradwire (` + strings.Join(words, "|") + `)\b`)
	return func(text string) string {
		return command.ReplaceAllString(text, "${1}"+strings.ReplaceAll(root.Name(), "$", "$$")+" $2")
	}
}

var (
	noArguments   = exactly(0, "no arguments")
	onePlan       = exactly(1, "one plan")
	oneSubmission = exactly(1, "one submission")
)

// exactly wants n arguments that are called what.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return usage(cmd, fmt.Errorf("%s takes %s, but %s", cmd.CommandPath(), what, given(args)))
	}
}

// given describes the arguments of a command line, for an error.
func given(args []string) string {
	if len(args) == 1 {
		return fmt.Sprintf("%q was given", args[0])
	}
	return fmt.Sprintf("%d arguments were given", len(args))
}

// atMostOne wants one argument or none, which is called what.
func atMostOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= 1 {
			return nil
		}
		return usage(cmd, fmt.Errorf("%s takes one %s at most, but %s", cmd.CommandPath(), what, given(args)))
	}
}

// some wants arguments, as many as there are; what says of which kind.
func some(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return usage(cmd, fmt.Errorf("%s takes %s", cmd.CommandPath(), what))
	}
}

// group is a command that only has commands below it.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownCommand(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}
