// Package naming says what may name a node of a plan and a process of a cluster. The two follow one
// rule because a node of a plan is placed on the process of the same name.
package naming

import (
	"fmt"
	"strings"
)

// Max is the largest length of a name in bytes.
const Max = 64

// Problem says what keeps a text from being a name, as the end of a sentence that begins with the
// text: "is no name for a node; …". It is empty for a name: a letter or digit, then letters,
// digits, dots, dashes and underscores, [Max] bytes at most.
func Problem(s string) string {
	switch {
	case s == "" || len(s) > Max:
		return fmt.Sprintf("has %d bytes; a node's name has 1 to %d", len(s), Max)
	case !letterOrDigit(rune(s[0])):
		return "does not begin with a letter or digit, as a node's name does"
	case strings.ContainsFunc(s, func(r rune) bool { return !letterOrDigit(r) && !strings.ContainsRune("_.-", r) }):
		return "is no name for a node; accepted are the letters a to z, digits, dots, dashes and underscores"
	}
	return ""
}

func letterOrDigit(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
