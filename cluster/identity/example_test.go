package identity_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gradwire/gradwire/cluster/identity"
)

// An authority, and the certificate of a node. The commands `gradwire identity init` and `issue` do
// the same.
func Example() {
	dir, err := os.MkdirTemp("", "authority-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ca, node := filepath.Join(dir, "ca"), filepath.Join(dir, "a")
	if err := identity.Init(ca); err != nil {
		fmt.Println(err)
		return
	}
	if err := identity.Issue(ca, node, identity.Subject{Name: "a", Role: identity.Node}); err != nil {
		fmt.Println(err)
		return
	}
	id, err := identity.Load(node)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(id.Name(), id.Role())
	// Output: a node
}
