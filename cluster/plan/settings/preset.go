package settings

import (
	"errors"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// Preset has the settings that a name stands for, in a plan's flow style, take the place of s,
// which has been read from n: those of n count instead of the name's, and the name goes. A name
// that is not known changes nothing.
func Preset[S any](s *S, name *string, n *syntax.Node, defaults S, known map[string]string) error {
	text, ok := known[*name]
	if !ok {
		return nil
	}
	_, preset, err := syntax.ParseAssignment("preset=" + text)
	if err != nil {
		return err
	}
	*s = defaults
	err = errors.Join(Decode(preset, s), Decode(n, s))
	*name = ""
	return err
}
