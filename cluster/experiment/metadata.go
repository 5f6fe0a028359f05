package experiment

import (
	"path/filepath"
	"slices"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/saved"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/datasets"
)

// metadata says, in JSON, what somebody needs who uses the model of a run elsewhere: "model" and
// "data" as the resolved plan has them, and what [saved.Describe] says of the samples.
func (p *Point) metadata(shelf *shelf.Shelf, seed uint64) (map[string]string, error) {
	data, err := shelf.Samples(&p.Spec.Data, seed)
	if err != nil {
		return nil, err
	}
	model, err := p.Spec.Plan.Model.JSON()
	if err != nil {
		return nil, err
	}
	read, err := shelf.Source(&p.Spec.Data)
	if err != nil {
		return nil, err
	}
	source, err := withoutFolders(p.Spec.Plan.Data.Without("split", "delivery"), read.Files).JSON()
	if err != nil {
		return nil, err
	}
	about, err := saved.Describe(data.Train, data.Filler, data.Scaler)
	if err != nil {
		return nil, err
	}
	about["model"], about["data"] = string(model), string(source)
	return about, nil
}

// withoutFolders returns a section in which the files that were read are called by their names
// alone, wherever they lay.
func withoutFolders(section *syntax.Node, files []datasets.File) *syntax.Node {
	section = section.Clone()
	for i, f := range section.Fields {
		if f.Value.Kind == syntax.Map {
			section.Fields[i].Value = withoutFolders(f.Value, files)
		}
		name := filepath.Base(f.Value.Text)
		if f.Value.Kind == syntax.Scalar && slices.ContainsFunc(files,
			func(file datasets.File) bool { return file.Name == name }) {
			f.Value.Text = name
		}
	}
	return section
}
