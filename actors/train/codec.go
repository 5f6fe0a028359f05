package train

import (
	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/protos"
)

// Codec makes codes of a node's vectors of parameters, and vectors of the codes of others. It
// remembers no vector, so that codes of any sender may come in any order. A nil Codec is that of
// the empty chain: a vector is its own code.
type Codec struct {
	env     actors.Env
	encoder *compress.Encoder
	decoder *compress.Decoder
	params  int
}

// NewCodec makes the codec of a node; nil for an empty chain.
func NewCodec(env actors.Env, task *Task, chain compress.Chain) *Codec {
	if len(chain) == 0 {
		return nil
	}
	params, tensors := task.Model.Params(), task.Model.Tensors()
	return &Codec{env: env, params: params,
		encoder: chain.NewEncoder(params, tensors, compress.None, env.Rand("compress")),
		decoder: chain.NewDecoder(params, tensors, compress.None)}
}

// Size is the number of words of the code of a vector of so many parameters.
func (c *Codec) Size(params int) int {
	if c == nil {
		return params
	}
	return c.encoder.Size()
}

// Encode returns the code of a vector. The caller keeps its reference and gets one to the code.
func (c *Codec) Encode(t *protos.Tensor) *protos.Tensor {
	if c == nil {
		return t.Retain()
	}
	code := c.env.Tensors().Get(c.encoder.Size())
	c.encoder.Encode(code.Data, t.Data)
	c.env.Charge(c.encoder.Work())
	return code
}

// Decode returns what a code of Size words stands for. The caller keeps its reference and gets one
// to the vector. An error is about a code that nobody has made.
func (c *Codec) Decode(code *protos.Tensor) (*protos.Tensor, error) {
	if c == nil {
		return code.Retain(), nil
	}
	t := c.env.Tensors().Get(c.params)
	if err := c.decoder.Decode(t.Data, code.Data); err != nil {
		t.Release()
		return nil, err
	}
	c.env.Charge(c.decoder.Work())
	return t, nil
}
