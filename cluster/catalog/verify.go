package catalog

import (
	"github.com/gradwire/gradwire/datasets"
	sets "github.com/gradwire/gradwire/datasets/published"
)

// verified loads a published set and refuses files that are not those that were published.
func verified(set string, load func(folder string, published bool) (*datasets.Source, error)) func(string,
	bool) (*datasets.Source, error) {
	return func(folder string, published bool) (*datasets.Source, error) {
		source, err := load(folder, published)
		if err == nil {
			err = sets.Verify(set, source.Files)
		}
		if err != nil {
			return nil, err
		}
		return source, nil
	}
}
