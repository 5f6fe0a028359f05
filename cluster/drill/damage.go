package drill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/cluster/checkpoint"
)

// DamageRefused watches files with the state of a run.
var DamageRefused = Invariant{"damage-refused",
	"of two checkpoints of a run, a bit of the newer of which is flipped, the older is the one to go on from",
	func(w *Watch) (bool, string) { return w.Resumed != nil, w.Damaged }}

// damaged keeps a state of a run in two checkpoints, flips a bit of the newer, and says what is
// wrong with what is read then; empty if nothing is. The seed draws the bit.
func damaged(saved *state.Saved, at time.Duration, seed uint64) (broken string, err error) {
	dir, err := os.MkdirTemp("", "gradwire-drill-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	folder := checkpoint.NewFolder(dir, 2)
	err = errors.Join(folder.Save(checkpoint.State{At: at - 1, Declared: saved}),
		folder.Save(checkpoint.State{At: at, Declared: saved}), folder.Wait())
	if err != nil {
		return "", err
	}
	names, err := folder.Names()
	if err != nil {
		return "", err
	}
	bit, err := flip(names[0], seed)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		s, err := folder.Read(name)
		switch {
		case errors.Is(err, checkpoint.ErrDamaged):
			continue
		case err != nil:
			return "", err
		case s.At != at-1:
			return fmt.Sprintf("the one of %v is taken, of which bit %d is flipped", at, bit), nil
		case !s.Declared.Equal(saved):
			return fmt.Sprintf("the one of %v is not as it was written", s.At), nil
		}
		return "", nil
	}
	return "both are refused", nil
}

// flip flips a random bit in one file of a checkpoint, and returns the bit's position.
func flip(checkpoint string, seed uint64) (bit uint64, err error) {
	files, err := filepath.Glob(filepath.Join(checkpoint, "*"))
	if err != nil {
		return 0, err
	}
	name := files[seed%uint64(len(files))]
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	bit = seed * 0x9e3779b97f4a7c15 % uint64(8*len(b))
	b[bit/8] ^= 1 << (bit % 8)
	return bit, os.WriteFile(name, b, 0o600)
}
