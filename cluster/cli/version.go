package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/nn/kernel"
)

// addVersion gives the root the flag --version.
func addVersion(root *cobra.Command, con *console) {
	version := false
	root.Flags().BoolVar(&version, "version", false, "say which build this is")
	help := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if !version {
			return help(cmd, args)
		}
		b := record.ReadBuild(kernel.Name())
		return con.print(b, func(out io.Writer) error { return writeVersion(out, cmd.Name(), b) })
	}
}

// writeVersion says which build of a program of that name this is.
func writeVersion(out io.Writer, name string, b record.Build) error {
	commit := "commit " + b.Commit
	switch {
	case b.Modified:
		commit += ", modified"
	case b.Program != "":
		commit += ": built without version control, as 'go run' and -buildvcs=false do"
	}
	if b.Program != "" {
		commit += "\nprogram " + b.Program + ", of the SHA-256 of this executable"
	}
	platform := b.GOOS + "/" + b.GOARCH
	if b.GOAMD64 != "" {
		platform += " " + b.GOAMD64
	}
	_, err := fmt.Fprintf(out, "%s %s\n%s\n%s, %s, kernels %s\n", name, b.Version, commit, b.Go, platform, b.Kernel)
	return err
}
