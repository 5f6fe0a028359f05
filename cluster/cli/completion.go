package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli/bundled"
	"github.com/gradwire/gradwire/cluster/cli/shell"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/published"
)

// offer offers kinds with what they are.
func offer[T any](all []catalog.Kind[T]) shell.Completer {
	var list shell.Offers
	for _, k := range all {
		list = append(list, cobra.CompletionWithDesc(k.Name, k.Doc))
	}
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// complete gives every command and flag of the tree its completions: folders and files where
// they are meant, and nothing where nothing is known.
func complete(root *cobra.Command, c *catalog.Catalog, e bundled.Plans) {
	aPlan, aRun := shell.UpTo(1, plans(e)), shell.UpTo(1, shell.Records("runs"))
	var sets []string
	for _, s := range published.All() {
		sets = append(sets, s.Name)
	}
	arguments := map[string]shell.Completer{
		"run": aPlan, "submit": aPlan, "links": aPlan, "plan check": aPlan, "plan show": aPlan,
		"report": shell.Records(""), "diff": shell.UpTo(2, shell.Records("")),
		"replay": aRun, "eval": aRun, "predict": aRun,
		"data get": shell.EachOnce(sets...), "data check": shell.EachOnce(sets...),
		"identity init": shell.UpTo(1, shell.Folders), "identity issue": shell.UpTo(1, shell.Folders),
	}
	flags := map[string]shell.Completer{
		"set": assignments(c, e), "clock": shell.EachOnce(string(driver.Virtual), string(driver.Real)),
		"data": shell.Folders, "identity": shell.Folders, "out": shell.Folders,
		"continue":        shell.Records(""),
		"plan new --data": offer(c.Datasets.All()), "plan new --architecture": offer(c.Architectures.All()),
		"plan new --out": shell.Files("yaml", "yml"),
		"eval --data":    shell.AnyFile, "eval --labels": shell.AnyFile,
		"predict --data": shell.AnyFile, "predict --out": shell.AnyFile,
		"plan schema --out": shell.Files("json"), "report --out": shell.Files("html", "htm"),
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		if cmd.ValidArgsFunction == nil && cmd.ValidArgs == nil && !cmd.HasSubCommands() {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
			if next, ok := arguments[path]; ok {
				cmd.ValidArgsFunction = next
			}
		}
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() == "bool" {
				return
			}
			for _, name := range []string{path + " --" + f.Name, f.Name} {
				if flag, ok := flags[name]; ok {
					_ = cmd.RegisterFlagCompletionFunc(f.Name, flag) // fails for unknown flags alone
					return
				}
			}
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
	_ = root.RegisterFlagCompletionFunc("format", shell.EachOnce(formats...)) // it has the flag
}

// assignments offers the keys of the plan that the line names, or of any plan, and words for
// their values.
func assignments(c *catalog.Catalog, e bundled.Plans) shell.Completer {
	return func(cmd *cobra.Command, args []string, typed string) (shell.Offers, shell.Directive) {
		var root *syntax.Node
		switch {
		case len(args) > 0:
			src, err := os.ReadFile(args[0])
			if one, ok := e.Find(args[0]); err != nil && ok {
				src, err = []byte(one.Text), nil
			}
			if err == nil {
				root, _ = syntax.Parse(args[0], src) // a plan that is not in order yet has no keys to offer
			}
		case cmd.Name() == "new":
			root = begun(cmd, c)
		}
		var list shell.Offers
		way := cobra.ShellCompDirectiveNoFileComp
		for _, next := range c.Schema("").Complete(root, typed) {
			if strings.HasSuffix(next.Text, ".") || strings.HasSuffix(next.Text, "=") {
				way |= cobra.ShellCompDirectiveNoSpace
			}
			list = append(list, cobra.CompletionWithDesc(next.Text, next.Doc))
		}
		return list, way
	}
}

// begun is the plan that plan new would write, or as much of it as its flags tell.
func begun(cmd *cobra.Command, c *catalog.Catalog) *syntax.Node {
	s := catalog.Start{
		Architecture: cmd.Flag("architecture").Value.String(), Data: cmd.Flag("data").Value.String(),
		Load: func(catalog.Loader) (*datasets.Source, error) { return nil, errors.New("too slow for a completion") },
	}
	if text, err := c.Start(s); err == nil {
		root, _ := syntax.Parse("new plan", []byte(text)) // it has been read already
		return root
	}
	name := func(key, word string) *syntax.Node {
		return syntax.NewMap(syntax.Field{Key: key, Value: syntax.NewText(word)})
	}
	return syntax.NewMap(syntax.Field{Key: "data", Value: name("set", s.Data)},
		syntax.Field{Key: "architecture", Value: name("kind", s.Architecture)})
}

// plans offers files of plans, and examples where no file begins with what is typed.
func plans(e bundled.Plans) shell.Completer {
	return func(cmd *cobra.Command, args []string, typed string) (shell.Offers, shell.Directive) {
		if found, err := filepath.Glob(shell.Beginning(typed)); err == nil && len(found) == 0 {
			var list shell.Offers
			for _, one := range e.All() {
				if strings.HasPrefix(one.Name, typed) {
					list = append(list, cobra.CompletionWithDesc(one.Name, one.Described().About))
				}
			}
			if len(list) > 0 {
				return list, cobra.ShellCompDirectiveNoFileComp
			}
		}
		return shell.Files("yaml", "yml")(cmd, args, typed)
	}
}
