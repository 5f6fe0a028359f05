package catalog

import (
	"slices"

	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/nn/compress"
)

func addCompressors(c *Catalog) {
	k := &c.Compressors
	k.Declare("top-k", compress.TopK{}, "keeps the values of largest magnitude, with their indices")
	k.Declare(
		"random-k",
		compress.RandomK{},
		"keeps random values, whose indices both ends draw from a seed; with feedback: none times 1 ÷ share",
	)
	k.Declare(
		"powersgd",
		compress.PowerSGD{Rank: 2},
		"matrices of a low rank, by the power method; vectors, and parts with fragments, stay whole (Vogels et al. 2019)",
	)
	k.Declare("float16", compress.Float16{}, "half precision: 16 bits a value")
	k.Declare("bfloat16", compress.BFloat16{}, "the upper half of a float32: 16 bits a value")
	integers := func(name string, bits int, doc string) {
		type fixed struct {
			Block    int               `plan:"block" range:"1..1048576" doc:"values that share a scale"`
			Rounding compress.Rounding `plan:"rounding" words:"nearest|stochastic" doc:"stochastic is right on the average"`
		}
		k.Add(Define(name, doc,
			func() fixed { o := compress.Int(bits); return fixed{o.Block, o.Rounding} },
			func(_ *Catalog, s *fixed) (compress.Operator, error) {
				o := compress.Blocks{Bits: bits, Block: s.Block, Rounding: s.Rounding}
				return o, o.Validate()
			}))
	}
	integers("int8", 8, "integers of 8 bits, times a scale for each block of values")
	integers("int4", 4, "integers of 4 bits, times a scale for each block of values")
	k.Declare("quantise", compress.Int(4), "integers of 2 to 8 bits, times a scale for each block of values")
	k.Declare("qsgd", compress.QSGD{Levels: 15},
		"levels from 0 to the norm, at random so that the mean is exact (Alistarh et al. 2017)")
	k.Declare(
		"ternary",
		compress.Ternary{Clip: 2.5},
		"-1, 0 or 1 times the largest magnitude, at random so that the mean is exact but for clipping (TernGrad; Wen et "+
			"al. 2017)",
	)
	k.Declare("sign", compress.Sign{}, "signs, times the mean absolute value")
	k.Declare("natural", compress.Natural{},
		"powers of two, at random so that the mean is exact (Horváth et al. 2022)")
}

// compression are the settings of what an architecture compresses on the way to a server and back.
type compression struct {
	Up       []*syntax.Node    `plan:"up" names:"compressor" doc:"what is done to gradients, in this order"`
	Down     []*syntax.Node    `plan:"down" names:"compressor" doc:"what is done to the difference of the model from the one that the worker has, in this order"`
	Feedback compress.Feedback `plan:"feedback" words:"ef|ef21|none" doc:"what becomes of what gradients lose: ef: it is added to the next; ef21: differences from what the server has are sent; none: it is forgotten"`
}

// inPlace reads a section, if there is one, into settings that have their defaults, has them taken
// in, and spells them out in place.
func inPlace[T any](section **syntax.Node, s T, take func(*T) error) (err error) {
	if *section == nil {
		return nil
	}
	if err := settings.Decode(*section, &s); err != nil {
		return err
	}
	if err := take(&s); err != nil {
		return err
	}
	*section, err = settings.Encode(&s)
	return err
}

// compression reads what is compressed in both directions.
func (c *Catalog) compression(section **syntax.Node) (both compress.Both, err error) {
	err = inPlace(section, compression{Feedback: compress.EF}, func(s *compression) (err error) {
		both.Feedback = s.Feedback
		if both.Up, err = c.chain(s.Up); err == nil {
			both.Down, err = c.chain(s.Down)
		}
		return err
	})
	return both, err
}

// upward are the settings of what workers compress that have no server.
type upward struct {
	Up       []*syntax.Node    `plan:"up" names:"compressor" doc:"what is done to gradients, in this order; with reduce: models to the difference of the model from the last one that all had"`
	Feedback compress.Feedback `plan:"feedback" words:"ef|ef21|none" doc:"what becomes of what is lost: ef: it is added to the next; ef21: differences from what the others have are sent; none: it is forgotten"`
}

// upward reads what workers compress that have no server.
func (c *Catalog) upward(section **syntax.Node) (chain compress.Chain, f compress.Feedback, err error) {
	err = inPlace(section, upward{Feedback: compress.EF}, func(s *upward) (err error) {
		f = s.Feedback
		chain, err = c.chain(s.Up)
		return err
	})
	return chain, f, err
}

// whole are the settings of what is done to models that travel as a whole.
type whole struct {
	Models []*syntax.Node `plan:"models" names:"compressor" doc:"how the values of models are written with fewer bits"`
}

// whole reads what is done to models that travel as a whole.
func (c *Catalog) whole(section **syntax.Node) (chain compress.Chain, err error) {
	err = inPlace(section, whole{}, func(s *whole) (err error) {
		given := slices.Clone(s.Models)
		if chain, err = c.chain(s.Models); err != nil {
			return err
		}
		if err := chain.Models(); err != nil { // about the first: others stand in no chain
			return syntax.Errorf(given[0], "%w", err)
		}
		return nil
	})
	return chain, err
}

// chain reads a list of compressors, words or maps, and spells their defaults out in place.
func (c *Catalog) chain(list []*syntax.Node) (chain compress.Chain, err error) {
	for i, n := range list {
		var o compress.Operator
		if o, list[i], err = c.Compressors.readWord(c, n); err != nil {
			return nil, err
		}
		chain = append(chain, o)
		if err := chain.Validate(); err != nil {
			return nil, syntax.Errorf(n, "%w", err)
		}
	}
	return chain, nil
}

// choco are the settings of CHOCO-SGD.
type choco struct {
	Compress []*syntax.Node `plan:"compress" names:"compressor" doc:"what is done to differences of models, in this order; left out: models travel whole"`
	Choco    dpsgd.Choco    `plan:",inline"`
}

// choco reads the settings of CHOCO-SGD.
func (c *Catalog) choco(section **syntax.Node) (read dpsgd.Choco, err error) {
	err = inPlace(section, choco{Choco: dpsgd.Choco{Rate: 1}}, func(s *choco) (err error) {
		read = s.Choco
		read.Compress, err = c.chain(s.Compress)
		return err
	})
	return read, err
}
