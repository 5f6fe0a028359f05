package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli/bundled"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/published"
)

type (
	// completer says how what is being typed can go on, given the arguments before it.
	completer = cobra.CompletionFunc
	offers    = []cobra.Completion
	directive = cobra.ShellCompDirective
)

// folders offers folders.
var folders = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)

// anyFile offers all files.
var anyFile = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)

// files offers files with these endings.
func files(endings ...string) completer {
	return cobra.FixedCompletions(endings, cobra.ShellCompDirectiveFilterFileExt)
}

// eachOnce offers words that are not on the line yet.
func eachOnce(all ...string) completer {
	return func(_ *cobra.Command, args []string, _ string) (offers, directive) {
		left := slices.DeleteFunc(slices.Clone(all), func(w string) bool { return slices.Contains(args, w) })
		return left, cobra.ShellCompDirectiveNoFileComp
	}
}

// offer offers kinds with what they are.
func offer[T any](all []catalog.Kind[T]) completer {
	var list offers
	for _, k := range all {
		list = append(list, cobra.CompletionWithDesc(k.Name, k.Doc))
	}
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// upTo offers completions of the first n arguments alone.
func upTo(n int, next completer) completer {
	return func(cmd *cobra.Command, args []string, typed string) (offers, directive) {
		if len(args) >= n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return next(cmd, args, typed)
	}
}

// complete gives every command and flag of the tree its completions: folders and files where
// they are meant, and nothing where nothing is known.
func complete(root *cobra.Command, c *catalog.Catalog, e bundled.Plans) {
	aPlan := upTo(1, plans(e))
	var sets []string
	for _, s := range published.All() {
		sets = append(sets, s.Name)
	}
	arguments := map[string]completer{
		"run": aPlan, "submit": aPlan, "links": aPlan, "plan check": aPlan, "plan show": aPlan,
		"report": records(""), "diff": upTo(2, records("")), "replay": upTo(1, records("runs")),
		"eval": upTo(1, records("runs")), "predict": upTo(1, records("runs")),
		"data get": eachOnce(sets...), "data check": eachOnce(sets...),
		"identity init": upTo(1, folders), "identity issue": upTo(1, folders),
	}
	flags := map[string]completer{
		"set": assignments(c, e), "clock": eachOnce(string(driver.Virtual), string(driver.Real)),
		"data": folders, "identity": folders, "out": folders,
		"continue":        records(""),
		"plan new --data": offer(c.Datasets.All()), "plan new --architecture": offer(c.Architectures.All()),
		"plan new --out": files("yaml", "yml"),
		"eval --data":    anyFile, "predict --data": anyFile, "eval --labels": anyFile, "predict --out": anyFile,
		"plan schema --out": files("json"), "report --out": files("html", "htm"),
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
	_ = root.RegisterFlagCompletionFunc("format", eachOnce(formats...)) // it has the flag
}

// assignments offers the keys of the plan that the line names, or of any plan, and words for
// their values.
func assignments(c *catalog.Catalog, e bundled.Plans) completer {
	return func(cmd *cobra.Command, args []string, typed string) (offers, directive) {
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
		var list offers
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
func plans(e bundled.Plans) completer {
	return func(cmd *cobra.Command, args []string, typed string) (offers, directive) {
		if found, err := filepath.Glob(escaped(typed) + "*"); err == nil && len(found) == 0 {
			var list offers
			for _, one := range e.All() {
				if strings.HasPrefix(one.Name, typed) {
					list = append(list, cobra.CompletionWithDesc(one.Name, one.Described().About))
				}
			}
			if len(list) > 0 {
				return list, cobra.ShellCompDirectiveNoFileComp
			}
		}
		return files("yaml", "yml")(cmd, args, typed)
	}
}

// records offers folders that hold a record, or the folders of runs below them; any folder where
// there is none.
func records(below string) completer {
	return func(_ *cobra.Command, args []string, typed string) (offers, directive) {
		var found offers
		for _, dir := range near(typed) {
			if _, err := os.Stat(filepath.Join(dir, "summary.json")); err != nil {
				continue
			}
			all := []string{dir}
			if below != "" {
				all, _ = filepath.Glob(filepath.Join(escaped(dir), below, "*")) // the pattern is in order
			}
			for _, path := range all {
				if strings.HasPrefix(path, typed) && !slices.Contains(args, path) {
					found = append(found, path)
				}
			}
		}
		if len(found) == 0 {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// near lists folders that what is typed may lead to: its way up and what begins like it. While
// nothing is typed the folders in results count too.
func near(typed string) []string {
	patterns := []string{escaped(typed) + "*"}
	if typed == "" {
		patterns = append(patterns, filepath.Join("results", "*"))
	}
	for up := filepath.Dir(typed); up != "." && up != filepath.Dir(up); up = filepath.Dir(up) {
		patterns = append(patterns, escaped(up))
	}
	if info, err := os.Stat(typed); err == nil && info.IsDir() {
		patterns = append(patterns, filepath.Join(escaped(typed), "*"))
	}
	var all []string
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern) // the patterns are in order
		for _, path := range found {
			if !slices.Contains(all, path) {
				all = append(all, path)
			}
		}
	}
	return all
}

// escaped is a path as a pattern that matches it alone.
func escaped(path string) string {
	if os.PathSeparator == '\\' {
		return path // where patterns have no escapes
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
