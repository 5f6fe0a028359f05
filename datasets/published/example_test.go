package published_test

import (
	"fmt"

	"github.com/gradwire/gradwire/datasets/published"
)

func ExampleFind() {
	set, known := published.Find("mnist")
	fmt.Println(known, set.Samples, set.Tests, len(set.Files))
	_, known = published.Find("imagenet")
	fmt.Println(known)
	// Output:
	// true 60000 10000 4
	// false
}
