package catalog

import (
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
	"github.com/gradwire/gradwire/nn"
)

// addNetworks adds the models that are made of layers, and the layers.
func addNetworks(c *Catalog) {
	for _, m := range []struct {
		name, doc string
		model     func() *nn.Network
	}{
		{"small-cnn", "two convolutions and two dense layers for 28 × 28 images; 21,840 parameters", nn.SmallCNN},
		{"big-cnn", "two convolutions of 3 × 3 and a wide dense layer for 28 × 28 images; 1,199,882 parameters",
			nn.BigCNN},
		{"lenet-5", "LeNet-5 with tanh and average pooling (LeCun et al. 1998); 61,706 parameters", nn.LeNet5},
	} {
		c.Models.Add(Define(m.name, m.doc, func() none { return none{} },
			func(*Catalog, *none) (nn.Model, error) { return m.model(), nil }))
	}
	type network struct {
		Input  []int          `plan:"input,required" doc:"channels, height and width"`
		Layers []*syntax.Node `plan:"layers,required" names:"layer" doc:"one after the other: words, or maps with settings"`
		Source *syntax.Node   `plan:",node"`
	}
	c.Models.Add(Define("network", "layers one after the other; input is [channels, height, width]",
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
	section := n
	if n.Kind == syntax.Scalar {
		section = n.As("kind")
	}
	layer, resolved, err := c.Layers.read(c, section, "kind")
	if err == nil && n.Kind == syntax.Scalar {
		resolved = n
	}
	return layer, resolved, err
}

func addLayers(c *Catalog) {
	type conv struct {
		Channels int `plan:"channels,required" range:"1.." doc:"of the output"`
		Kernel   int `plan:"kernel,required" range:"1.." doc:"height and width of a kernel"`
		Stride   int `plan:"stride" range:"1.." doc:"from one place to the next"`
		Padding  int `plan:"padding" range:"0.." doc:"rows and columns of zeros at each side"`
	}
	c.Layers.Add(Define("conv2d", "two-dimensional convolution with square kernels",
		func() conv { return conv{Stride: 1} },
		func(_ *Catalog, s *conv) (nn.Layer, error) {
			return nn.Conv2D{Channels: s.Channels, Kernel: s.Kernel, Stride: s.Stride, Padding: s.Padding}, nil
		}))
	type pool struct {
		Size   int `plan:"size" range:"1.." doc:"height and width of a square"`
		Stride int `plan:"stride,omitzero" range:"0.." doc:"from one square to the next; default: size"`
	}
	c.Layers.Add(Define("max-pool", "largest value of each square", func() pool { return pool{Size: 2} },
		func(_ *Catalog, s *pool) (nn.Layer, error) { return nn.MaxPool{Size: s.Size, Stride: s.Stride}, nil }))
	c.Layers.Add(Define("average-pool", "mean of each square", func() pool { return pool{Size: 2} },
		func(_ *Catalog, s *pool) (nn.Layer, error) {
			return nn.AveragePool{Size: s.Size, Stride: s.Stride}, nil
		}))
	c.Layers.Add(Define("flatten", "planes to one vector", func() none { return none{} },
		func(*Catalog, *none) (nn.Layer, error) { return nn.Flatten{}, nil }))
	type dense struct {
		Outputs int `plan:"outputs,required" range:"1.." doc:"values of the output"`
	}
	c.Layers.Add(Define("dense", "fully connected", func() dense { return dense{} },
		func(_ *Catalog, s *dense) (nn.Layer, error) { return nn.Dense{Outputs: s.Outputs}, nil }))
	type dropout struct {
		Rate unit.Fraction `plan:"rate" doc:"the share of the values that become zero"`
	}
	c.Layers.Add(Define("dropout", "sets values to zero at random, in training only (Srivastava et al. 2014)",
		func() dropout { return dropout{Rate: 0.5} },
		func(_ *Catalog, s *dropout) (nn.Layer, error) { return nn.Dropout{Rate: float64(s.Rate)}, nil }))
	for _, a := range []nn.Activation{nn.ReLU, nn.Tanh, nn.Sigmoid} {
		c.Layers.Add(Define(a.String(), "activation", func() none { return none{} },
			func(*Catalog, *none) (nn.Layer, error) { return a, nil }))
	}
}
