package cli_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
)

// The commands, called from a program. Most programs call Main with their own catalog, and nothing
// else.
func ExampleProgram_Run() {
	var out, errs bytes.Buffer
	program := cli.Program{Name: "gradwire", Catalog: catalog.Default()}
	code := program.Run(context.Background(), []string{"plan", "check", "../../examples/quickstart.yaml"}, &out, &errs)
	order, _, _ := bytes.Cut(out.Bytes(), []byte("\n"))
	fmt.Print(code, " ", string(order), errs.String())
	// Output: 0 ../../examples/quickstart.yaml is in order
}
