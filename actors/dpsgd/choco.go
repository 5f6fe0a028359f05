package dpsgd

import (
	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/protos"
)

// choco compresses what a peer's neighbours are sent; nil where models travel as they are.
type choco struct {
	env     actors.Env
	chain   compress.Chain
	params  int
	tensors []nn.Tensor
	encoder *compress.Encoder // whose memory is x̂ of this peer
	code    *protos.Tensor    // of this step
}

func newChoco(env actors.Env, task *train.Task, chain compress.Chain) *choco {
	if chain == nil {
		return nil
	}
	c := &choco{env: env, chain: chain, params: task.Model.Params(), tensors: task.Model.Tensors()}
	c.encoder = chain.NewEncoder(c.params, c.tensors, compress.EF21, env.Rand("compress"))
	return c
}

// know lets x̂ approach the parameters, and returns it; the first time it becomes them.
func (c *choco) know(sent, params *protos.Tensor) *protos.Tensor {
	if c.code != nil {
		c.code.Release()
		c.code = nil
	}
	if sent == nil {
		copy(c.encoder.Memory(), params.Data)
		return protos.NewTensor(c.encoder.Memory())
	}
	c.code = c.env.Tensors().Get(c.encoder.Size())
	c.encoder.Encode(c.code.Data, params.Data)
	c.env.Charge(c.encoder.Work())
	return sent
}

// take takes in what a neighbour has sent of its model in a step: as a whole or a code.
func (c *choco) take(x *pair, s *slot) error {
	if !s.code {
		x.decoder = c.chain.NewDecoder(c.params, c.tensors, compress.EF21)
		copy(x.decoder.Memory(), s.params.Data)
		x.known = protos.NewTensor(x.decoder.Memory())
		return nil
	}
	if x.decoder == nil {
		return errUnknown
	}
	c.env.Charge(x.decoder.Work())
	return x.decoder.Add(s.params.Data)
}
