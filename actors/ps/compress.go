package ps

import (
	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/protos"
)

// compressor makes the ends of what is compressed between a shard and its workers.
type compressor struct {
	env     actors.Env
	both    compress.Both
	params  int
	tensors []nn.Tensor
}

func newCompressor(env actors.Env, params int, tensors []nn.Tensor, both compress.Both) compressor {
	return compressor{env: env, both: both, params: params, tensors: tensors}
}

// receiver is the shard's end of gradients; nil where they travel as they are.
func (c *compressor) receiver() *compress.Decoder {
	if c.both.Up == nil {
		return nil
	}
	return c.both.Up.NewDecoder(c.params, c.tensors, c.both.Feedback)
}

// sender is the shard's end of models for a worker that has those parameters.
func (c *compressor) sender(params []float32) *compress.Encoder {
	if c.both.Down == nil {
		return nil
	}
	e := c.both.Down.NewEncoder(c.params, c.tensors, compress.EF21, c.env.Rand("compress"))
	copy(e.Memory(), params)
	return e
}

// encode gives up a vector for its code.
func (c *compressor) encode(e *compress.Encoder, t *protos.Tensor) *protos.Tensor {
	code := c.env.Tensors().Get(e.Size())
	e.Encode(code.Data, t.Data)
	t.Release()
	c.env.Charge(e.Work())
	return code
}

// decode gives up a code for what it stands for. It ends the run over one that nobody has made.
func (c *compressor) decode(d *compress.Decoder, code *protos.Tensor) (*protos.Tensor, bool) {
	t := c.env.Tensors().Get(c.params)
	err := d.Decode(t.Data, code.Data)
	code.Release()
	if err != nil {
		t.Release()
		actors.Fail(c.env, "%w", err)
		return nil, false
	}
	c.env.Charge(d.Work())
	return t, true
}
