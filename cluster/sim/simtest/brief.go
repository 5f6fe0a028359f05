package simtest

import "os"

// Brief reports whether a test of random worlds looks at few of them. It looks at all where
// GRADWIRE_LENGTHY is set, which takes minutes.
func Brief() bool { return os.Getenv("GRADWIRE_LENGTHY") == "" }
