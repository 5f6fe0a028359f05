package main

import (
	_ "embed" // how the page begins
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// beginning is what stands on the page above the commands.
//
//go:embed beginning.txt
var beginning string

// writePage writes the page of all commands in Markdown.
func writePage(w io.Writer, root *cobra.Command) {
	_, _ = fmt.Fprint(w, beginning)
	_, _ = fmt.Fprint(w, "\n## Every command\n\n| command | what it does |\n|---|---|\n")
	visit(root, func(cmd *cobra.Command) {
		_, _ = fmt.Fprintf(w, "| [`%s`](#%s) | %s |\n", named(cmd), anchor(cmd), cmd.Short)
	})
	visit(root, func(cmd *cobra.Command) { writeCommand(w, cmd) })
}

// visit visits the commands that do something, in the order of their names.
func visit(cmd *cobra.Command, each func(cmd *cobra.Command)) {
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "help" {
			continue
		}
		if !sub.HasSubCommands() {
			each(sub)
		}
		visit(sub, each)
	}
}

// named is a command without the program's name.
func named(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return path
}

// anchor is the anchor of a command's heading.
func anchor(cmd *cobra.Command) string { return strings.ReplaceAll(named(cmd), " ", "-") }

// writeCommand writes the section of a command: what it does, how it is called, its flags,
// examples.
func writeCommand(w io.Writer, cmd *cobra.Command) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	_, _ = fmt.Fprintf(w, "\n### %s\n\n```text\n%s\n```\n\n", named(cmd), narrow(strings.TrimSpace(text)))
	_, _ = fmt.Fprintf(w, "```sh\n%s\n```\n", cmd.UseLine())
	if len(cmd.Aliases) > 0 {
		_, _ = fmt.Fprintf(w, "\nAlso called `%s`.\n", strings.Join(cmd.Aliases, "`, `"))
	}
	if cmd.HasAvailableLocalFlags() {
		writeFlags(w, cmd.LocalFlags())
	}
	if cmd.Example != "" {
		_, _ = fmt.Fprintf(w, "\n```sh\n%s\n```\n", strings.ReplaceAll("\n"+cmd.Example, "\n  ", "\n")[1:])
	}
}

// writeFlags writes a table of flags, if any needs to be told about.
func writeFlags(w io.Writer, flags *pflag.FlagSet) {
	head := "\n| flag | meaning |\n|---|---|\n"
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind, _ := pflag.UnquoteUsage(f); kind != "" {
			name += " " + kind
		}
		usage := strings.ReplaceAll(f.Usage, "|", `\|`)
		if !strings.Contains(usage, "(default") && f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" {
			usage += " (default: " + f.DefValue + ")"
		}
		_, _ = fmt.Fprintf(w, "%s| `%s` | %s |\n", head, name, usage)
		head = ""
	})
}

// maxColumns is how wide the page's texts may be.
const maxColumns = 100

// narrow fills the paragraphs of a text that are too wide; those with indented lines stay.
func narrow(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, paragraph := range paragraphs {
		lines := strings.Split(paragraph, "\n")
		wide := slices.ContainsFunc(lines, func(l string) bool { return utf8.RuneCountInString(l) > maxColumns })
		if !wide || strings.Contains("\n"+paragraph, "\n ") {
			continue
		}
		filled, column := "", 0
		for _, word := range strings.Fields(paragraph) {
			width := utf8.RuneCountInString(word)
			switch {
			case column == 0:
			case column+1+width > maxColumns:
				filled, column = filled+"\n", 0
			default:
				filled, column = filled+" ", column+1
			}
			filled, column = filled+word, column+width
		}
		paragraphs[i] = filled
	}
	return strings.Join(paragraphs, "\n\n")
}
