package cli

import (
	"bytes"
	"encoding/json"
	"os"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
)

func schemaCommand(c *catalog.Catalog, con *console) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Write the JSON Schema of plans, for editors",
		Long: `Write the JSON Schema (draft 2020-12) of plans: every key with what it means, its default and the
values that are accepted, and everything that this program's catalog has. Editors complete and check
plans by it. Those with the YAML language server (VS Code, Neovim, Emacs, Helix, …) do if the first
line of a plan is

  # yaml-language-server: $schema=plan.schema.json

or if their settings say so for all plans, as in VS Code

  "yaml.schemas": {"plan.schema.json": "plans/*.yaml"}

'gradwire plan check' says what a schema cannot: whether names of nodes exist, what a sweep puts where,
what happens in which order. With --out the schema replaces a file of that name.`,
		Example: "  gradwire plan schema --out plan.schema.json\n  gradwire plan schema > plan.schema.json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := schemaText(c, "A plan of "+cmd.Root().Name())
			if err != nil {
				return err
			}
			if file == "" {
				_, err = con.out.Write(text)
				return err
			}
			//nolint:gosec // as readable as the user's other files
			if err := os.WriteFile(file, text, 0o666); err != nil {
				return &driver.InputError{Err: err}
			}
			return con.say(facts{"schema": file}, "schema in %s\n", file)
		},
	}
	cmd.Flags().StringVar(&file, "out", "", "file to write (default: standard output)")
	return cmd
}

func schemaText(c *catalog.Catalog, title string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(c.Schema(title))
	return b.Bytes(), err
}
