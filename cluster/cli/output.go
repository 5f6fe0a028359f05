package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/cli/bundled"
	"github.com/gradwire/gradwire/cluster/cli/display"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/report/text"
)

// console is what commands print to, and in which form. Facts go to out; errors, and notes of how
// far a command is, to errs.
type console struct {
	out, errs io.Writer
	format    string
	quiet     bool
	explain   bool // how figures were computed, below them
	examples  bundled.Plans
	stored    bool                    // an argument was the address of a record in a store
	helped    error                   // error about a command that help does not know
	leaves    *atomic.Bool            // the command is a process of a cluster, which leaves it in order
	record    *atomic.Pointer[string] // folder or address of the record being written; nil before it exists
}

// formats are the accepted values of --format.
var formats = []string{"text", "json"}

// add gives a program the flags that all of its commands have.
func (con *console) add(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&con.format, "format", formats[0], "of facts and errors: text or json")
	flags.BoolVar(&con.quiet, "quiet", false, "no progress and no notes: standard error has errors alone")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if !slices.Contains(formats, con.format) {
			return usage(cmd, unknown(con.format, "a value of --format", formats))
		}
		return nil
	}
}

// addExplain gives a command that shows figures the flag that explains them.
func (con *console) addExplain(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&con.explain, "explain", false, "say how the figures were computed and compared")
}

// json reports whether facts and errors are JSON.
func (con *console) json() bool { return con.format == "json" }

// notes is where notes go.
func (con *console) notes() io.Writer {
	if con.quiet {
		return io.Discard
	}
	return con.errs
}

// print writes a value as JSON, or as text.
func (con *console) print(v any, text func(w io.Writer) error) error {
	if !con.json() {
		return text(con.out)
	}
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice && list.IsNil() {
		v = []any{}
	}
	e := json.NewEncoder(con.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// say writes a value as JSON, or the text of a format.
func (con *console) say(v any, format string, args ...any) error {
	return con.print(v, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, format, args...)
		return err
	})
}

// table writes a value as JSON, or rows whose cells, with tabs between them, stand below each
// other.
func (con *console) table(v any, rows func(w io.Writer)) error {
	return con.print(v, func(out io.Writer) error {
		var cells strings.Builder
		rows(&cells)
		return text.Rows(display.Screen(out), cells.String())
	})
}

// facts is what JSON says that has no type to itself.
type facts map[string]any

// failure is an error as JSON.
type failure struct {
	Error    string    `json:"error"`
	ExitCode int       `json:"exit_code"`
	Problems []problem `json:"problems,omitempty"`
}

// problem is one thing that is wrong with a plan; File is empty where --set brought it.
type problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Problem string `json:"problem"`
}

// fail writes an error: as text, or as one JSON object on one line, the last of standard error.
func (con *console) fail(err error, code int, named func(string) string) {
	if !con.json() {
		fmt.Fprintln(con.errs, named(err.Error()))
		return
	}
	f := failure{Error: named(err.Error()), ExitCode: code}
	var one *syntax.Error
	var many syntax.Errors
	if errors.As(err, &many) || errors.As(err, &one) {
		for _, e := range syntax.Flatten(nil, err) {
			p := problem{Path: e.Path, Problem: named(e.Problem)}
			if e.Pos.File != "--set" {
				p.File, p.Line, p.Column = e.Pos.File, e.Pos.Line, e.Pos.Column
			}
			f.Problems = append(f.Problems, p)
		}
	}
	text, _ := syntax.MarshalPlain(f) // texts and numbers always have a JSON
	fmt.Fprintf(con.errs, "%s\n", text)
}

// asked reports whether a command line asks for JSON, also where it cannot be parsed.
func asked(args []string) bool {
	at := slices.Index(args, "--format") + 1
	return slices.Contains(args, "--format=json") || at > 0 && at < len(args) && args[at] == "json"
}

// exit prints an error and returns the exit code that it stands for.
func (con *console) exit(err error, named func(string) string) int {
	var input *driver.InputError
	var wrong usageError
	var later *driver.AgainError
	code := ExitFailed
	switch {
	case err == nil:
		return ExitDone
	case errors.Is(err, errDiffers): // what differs has been printed
		return ExitFailed
	case err == errDegraded: //nolint:errorlint // joined with another error, that one counts
		return ExitDegraded
	case errors.As(err, &input), errors.As(err, &wrong):
		code = ExitInput
	case errors.As(err, &later):
		code = ExitTryAgain
	}
	con.fail(err, code, named)
	return code
}
