// Command gradwire runs plans; see 'gradwire --help'.
//
// Its page README.md and its man pages are made from its commands. A binary to give away is built
// by
//
//	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' ./cmd/gradwire
package main

import (
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
)

//go:generate go run ./generate

func main() { cli.Main(catalog.Default()) }
