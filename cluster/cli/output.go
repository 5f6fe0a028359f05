package cli

import (
	"encoding/json"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// formatUsage is what the flag --format says of itself.
const formatUsage = "text or json"

// checkFormat refuses a --format that is none, of any command that has the flag.
func checkFormat(cmd *cobra.Command, _ []string) error {
	f, formats := cmd.Flags().Lookup("format"), []string{"text", "json"}
	if f == nil || slices.Contains(formats, f.Value.String()) {
		return nil
	}
	return usage(cmd, unknown(f.Value.String(), "a value of --format", formats))
}

// printAs writes a value as JSON, or as text.
func printAs(format string, out io.Writer, v any, text func(w io.Writer) error) error {
	if format == "json" {
		return indented(out).Encode(v)
	}
	return text(out)
}

func indented(out io.Writer) *json.Encoder {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e
}

// aligned writes rows whose cells, with tabs between them, stand below each other.
func aligned(rows func(w io.Writer)) func(out io.Writer) error {
	return func(out io.Writer) error {
		w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
		rows(w)
		return w.Flush() // it keeps the first error of writing
	}
}
