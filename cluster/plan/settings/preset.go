package settings

import "github.com/gradwire/gradwire/cluster/plan/syntax"

// Preset returns a section with the settings, in a plan's flow style, that its key preset names in
// the place of that key; others in the section count instead. Errors about them point at the
// preset. Without a name that is known it is the section itself.
func Preset(section *syntax.Node, known map[string]string) (*syntax.Node, error) {
	name, _ := section.Get("preset")
	if name == nil || known[name.Text] == "" {
		return section, nil
	}
	_, preset, err := syntax.ParseAssignment("preset=" + known[name.Text])
	if err != nil {
		return nil, err
	}
	section = section.Without("preset")
	for _, f := range preset.Fields {
		if _, given := section.Get(f.Key); !given {
			f.Pos, f.Value = name.Pos, f.Value.Placed(name)
			section.Fields = append(section.Fields, f)
		}
	}
	return section, nil
}
