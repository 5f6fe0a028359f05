package processes

import (
	"bytes"
	"context"
	"flag"
	"os"
	"sync"
	"testing"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/nn/optim"
)

// asProgram makes the test's executable behave as gradwire.
const asProgram = "GRADWIRE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		cli.Main(poisonous())
	}
	flag.Parse()
	os.Exit(m.Run())
}

// poisonous returns a catalog with the optimizer fatal, whose first step aborts the process.
func poisonous() *catalog.Catalog {
	c := catalog.Default()
	c.Optimizers.Add(catalog.Define("fatal", "ends the process", func() struct{} { return struct{}{} },
		func(*catalog.Catalog, *struct{}) (optim.Method, error) {
			return poison{optim.SGD{Rate: optim.Constant(0.1)}}, nil
		}))
	return c
}

// poisonMark is part of the last output of a process that the optimizer fatal has aborted.
const poisonMark = "fatal error: sync: unlock of unlocked mutex"

type poison struct{ optim.SGD }

func (p poison) New(n int) optim.Optimizer { return poisoned{p.SGD.New(n)} }

type poisoned struct{ optim.Optimizer }

// Step aborts the process by a fatal error of the Go runtime, which no code can recover from.
func (poisoned) Step(_, _, _ []float32) { new(sync.Mutex).Unlock() }

// gradwire runs a command within this process.
func gradwire(ctx context.Context, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = cli.Program{Name: "gradwire", Catalog: poisonous()}.Run(ctx, args, &o, &e)
	return code, o.String(), e.String()
}
