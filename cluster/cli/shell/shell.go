// Package shell says to shells how what is being typed can go on.
package shell

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Completer says how what is being typed can go on, given the arguments before it.
type Completer = cobra.CompletionFunc

// Offers are the ways.
type Offers = []cobra.Completion

// Directive says what else a shell may offer.
type Directive = cobra.ShellCompDirective

// Folders offers folders.
var Folders = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)

// AnyFile offers all files.
var AnyFile = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)

// Files offers files with these endings.
func Files(endings ...string) Completer {
	return cobra.FixedCompletions(endings, cobra.ShellCompDirectiveFilterFileExt)
}

// EachOnce offers words that are not on the line yet.
func EachOnce(all ...string) Completer {
	return func(_ *cobra.Command, args []string, _ string) (Offers, Directive) {
		left := slices.DeleteFunc(slices.Clone(all), func(w string) bool { return slices.Contains(args, w) })
		return left, cobra.ShellCompDirectiveNoFileComp
	}
}

// UpTo offers completions of the first n arguments alone.
func UpTo(n int, next Completer) Completer {
	return func(cmd *cobra.Command, args []string, typed string) (Offers, Directive) {
		if len(args) >= n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return next(cmd, args, typed)
	}
}

// Records offers folders that hold a record, or the folders of runs below them; any folder where
// there is none.
func Records(below string) Completer {
	return func(_ *cobra.Command, args []string, typed string) (Offers, Directive) {
		var found Offers
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
	patterns := []string{Beginning(typed)}
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

// Beginning is the pattern of the paths that begin with what is typed.
func Beginning(typed string) string { return escaped(typed) + "*" }

// escaped is a path as a pattern that matches it alone.
func escaped(path string) string {
	if os.PathSeparator == '\\' {
		return path // where patterns have no escapes
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
