package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/cli/hint"
)

// unknownCommand is the error about words that begin with none of a group's commands: what does
// here what they do elsewhere, or the command that was likely meant.
func unknownCommand(group *cobra.Command, words []string) error {
	_, path, _ := strings.Cut(group.CommandPath(), " ")
	if text, known := hint.Of(path, words); known {
		return usage(group, fmt.Errorf("%q is not a command of %s: %s", words[0], group.CommandPath(), text))
	}
	var known []string
	for _, sub := range group.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	return usage(group, unknown(words[0], "a command of "+group.CommandPath(), known))
}
