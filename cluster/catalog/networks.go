package catalog

import (
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/nn"
)

// addNetworks adds the models that are made of layers, and the layers.
func addNetworks(c *Catalog) {
	m := &c.Models
	m.Declare("small-cnn", nn.SmallCNN(),
		"two convolutions and two dense layers for 28 × 28 images; 21,840 parameters")
	m.Declare("big-cnn", nn.BigCNN(),
		"two convolutions of 3 × 3 and a wide dense layer for 28 × 28 images; 1,199,882 parameters")
	m.Declare("lenet-5", nn.LeNet5(), "LeNet-5 with tanh and average pooling (LeCun et al. 1998); 61,706 parameters")
	type network struct {
		Input  []int          `plan:"input,required" example:"[1, 28, 28]" doc:"channels, height and width"`
		Layers []*syntax.Node `plan:"layers,required" example:"[flatten, {kind: dense, outputs: 10}]" names:"layer" doc:"one after the other: words, or maps with settings"`
		Source *syntax.Node   `plan:",node"`
	}
	m.Add(Define("network", "layers one after the other; input is [channels, height, width]",
		func() network { return network{} },
		func(c *Catalog, s *network) (nn.Model, error) {
			if len(s.Input) != 3 {
				return nil, syntax.Errorf(s.Source.At("input"),
					"an input of %d numbers; accepted are three: channels, height and width", len(s.Input))
			}
			layers := make([]nn.Layer, len(s.Layers))
			for i, section := range s.Layers {
				var err error
				if layers[i], s.Layers[i], err = c.layer(section); err != nil {
					return nil, err
				}
			}
			n, err := nn.NewNetwork(nn.Shape{Channels: s.Input[0], Height: s.Input[1], Width: s.Input[2]}, layers)
			if err != nil {
				return nil, syntax.Errorf(s.Source.At("layers"), "%w", err)
			}
			return n, nil
		}))
	addLayers(c)
}

// layer reads a layer: a word, or a map with settings.
func (c *Catalog) layer(n *syntax.Node) (nn.Layer, *syntax.Node, error) {
	layer, resolved, err := c.Layers.readWord(c, n)
	if err == nil && n.Kind == syntax.Scalar {
		resolved = n
	}
	return layer, resolved, err
}

func addLayers(c *Catalog) {
	l := &c.Layers
	l.Declare("conv2d", nn.Conv2D{Stride: 1}, "two-dimensional convolution with square kernels")
	l.Declare("max-pool", nn.MaxPool{Size: 2}, "largest value of each square")
	l.Declare("average-pool", nn.AveragePool{Size: 2}, "mean of each square")
	l.Declare("flatten", nn.Flatten{}, "planes to one vector")
	l.Declare("dense", nn.Dense{}, "fully connected")
	l.Declare("dropout", nn.Dropout{Rate: 0.5},
		"sets values to zero at random, in training only (Srivastava et al. 2014)")
	for _, a := range []nn.Activation{nn.ReLU, nn.Tanh, nn.Sigmoid} {
		l.Declare(a.String(), a, "activation")
	}
}
