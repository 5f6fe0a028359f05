package collective

import (
	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/protos"
)

// compressor is a rank's part in rounds of which codes travel. All ranks gather the codes of all,
// and each adds what they stand for in the order of ranks, its own included, so that all have the
// same bits.
//
// A rank sends the same code if a round is made again in another view, but with EF21, which begins
// anew with each view: the sum that a receiver remembers has parts of those who are gone.
type compressor struct {
	env     actors.Env
	encoder *compress.Encoder
	decoder *compress.Decoder // of all ranks: what EF21 remembers there is the sum of their memories
	renews  bool              // with each view
	params  int
	part    []float32      // what the code of one rank stands for
	code    *protos.Tensor // of the round under way; nil before
}

// newCompressors returns one for each part that is exchanged in turn; none where vectors travel as
// they are.
func newCompressors(env actors.Env, task *train.Task, a *Architecture) (all []*compressor) {
	if !a.compresses() {
		return nil
	}
	params := a.values(task.Model.Params())
	tensors := a.shapes(task.Model.Tensors())
	for range a.parts() {
		all = append(all, &compressor{env: env, renews: a.Feedback == compress.EF21, params: params,
			part:    make([]float32, params),
			encoder: a.Compress.NewEncoder(params, tensors, a.Feedback, env.Rand("compress")),
			decoder: a.Compress.NewDecoder(params, tensors, a.Feedback)})
	}
	return all
}

// shapes are the tensors of what a round exchanges; none, for one vector, of a part.
func (a *Architecture) shapes(model []nn.Tensor) []nn.Tensor {
	if a.parts() > 1 {
		return nil
	}
	return model
}

// enter begins a view.
func (c *compressor) enter() {
	if c.renews {
		clear(c.encoder.Memory())
		clear(c.decoder.Memory())
		c.end()
	}
}

// end forgets the code of the round.
func (c *compressor) end() {
	if c.code != nil {
		c.code.Release()
		c.code = nil
	}
}

// gather returns a vector for the codes of all ranks, of which this rank's is there. It releases
// the vector that it encodes.
func (c *compressor) gather(vector *protos.Tensor, rank, ranks int) *protos.Tensor {
	size := c.encoder.Size()
	if c.code == nil {
		c.code = c.env.Tensors().Get(size)
		c.encoder.Encode(c.code.Data, vector.Data)
		c.env.Charge(c.encoder.Work())
	}
	vector.Release()
	all := c.env.Tensors().Get(size * ranks)
	copy(all.Data[rank*size:], c.code.Data)
	return all
}

// mean is the sum of what all codes stand for, divided by a weight. It releases the codes, and
// returns an error about one that nobody has made.
func (c *compressor) mean(all *protos.Tensor, weight float32) (*protos.Tensor, error) {
	defer all.Release()
	sum, size := c.env.Tensors().Get(c.params), c.encoder.Size()
	for at := 0; at < len(all.Data); at += size {
		if err := c.add(sum.Data, all.Data[at:at+size], at == 0); err != nil {
			sum.Release()
			return nil, err
		}
		c.env.Charge(c.decoder.Work() + float64(c.params)) // n−1 sums and a quotient
	}
	if c.renews {
		copy(sum.Data, c.decoder.Memory())
	}
	if weight != 1 {
		divide(sum.Data, weight)
	}
	return sum, nil
}

// add adds what a code stands for to a sum, which the first becomes. The sum of EF21 is the one
// that the decoder remembers.
func (c *compressor) add(sum, code []float32, first bool) error {
	switch {
	case c.renews:
		return c.decoder.Add(code)
	case first:
		return c.decoder.Decode(sum, code)
	}
	err := c.decoder.Decode(c.part, code)
	nn.AddScaled(sum, 1, c.part)
	return err
}
