// Command gradwire runs plans; see 'gradwire --help'.
//
// README.md and the man pages are generated from its commands. This builds a binary to distribute:
//
//	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' ./cmd/gradwire
package main

import (
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/examples"
)

//go:generate go run ./generate

func main() { cli.Program{Catalog: catalog.Default(), Examples: examples.Files}.Main() }
