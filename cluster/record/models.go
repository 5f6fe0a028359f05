package record

import (
	"io"
	"maps"
	"strconv"

	"github.com/gradwire/gradwire/cluster/record/safetensors"
)

// NodeModel is the model that a node has ended with.
type NodeModel struct {
	Node   string
	Params []float32
	// Accuracy is a fraction.
	Accuracy float64
}

// Models are the models that a run has ended with.
type Models struct {
	// Judged is the one that the run's figures are of: a server's, or the average model. It is nil
	// where the figures are of several.
	Judged []float32
	// Nodes are the models of the nodes, each divided as Tensors says.
	Nodes   []NodeModel
	Tensors []safetensors.Tensor
	// Metadata is for both files.
	Metadata map[string]string
}

// writeNodes writes the nodes' models as one safetensors file, each tensor under the node's name, a
// slash and its own. The metadata has the accuracy of each node's model under "accuracy NODE".
func (m *Models) writeNodes(w io.Writer) error {
	metadata, total := maps.Clone(m.Metadata), 0
	if metadata == nil {
		metadata = map[string]string{}
	}
	var tensors []safetensors.Tensor
	var parts [][]float32
	for _, n := range m.Nodes {
		for _, t := range m.Tensors {
			t.Name, t.Offset = n.Node+"/"+t.Name, total+t.Offset
			tensors = append(tensors, t)
		}
		parts = append(parts, n.Params)
		total += len(n.Params)
		metadata["accuracy "+n.Node] = strconv.FormatFloat(n.Accuracy, 'g', -1, 64)
	}
	return safetensors.Write(w, tensors, metadata, parts...)
}
