// Command gradwire runs plans; see 'gradwire --help'.
package main

import (
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
)

func main() { cli.Main(catalog.Default()) }
