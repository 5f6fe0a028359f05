package syntax

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// flowWidth is how long a line may be for a map or a list to stand on it whole.
const flowWidth = 120

// YAML writes the node as canonical text that [Parse] reads back as an equal tree: the top in block
// style, what is short below it in flow style ({kind: sgd, rate: 0.05}), lists of maps one item a
// line.
func (n *Node) YAML() string {
	var b strings.Builder
	if n.Kind == Map && len(n.Fields) > 0 {
		writeFields(&b, n, 0)
		return b.String()
	}
	writeValue(&b, n, 0, flowWidth)
	return strings.TrimPrefix(b.String(), "\n")
}

// Flow writes the node on one line, in flow style.
func (n *Node) Flow() string {
	var b strings.Builder
	writeFlow(&b, n, -1)
	return b.String()
}

// String is [Node.Flow], cut after 200 characters.
func (n *Node) String() string {
	if n == nil {
		return "null"
	}
	return Printable(n.Flow(), 200)
}

func writeFields(b *strings.Builder, n *Node, indent int) {
	for i, f := range n.Fields {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", indent))
		}
		key := scalarText(f.Key, false, true)
		b.WriteString(key + ":")
		writeValue(b, f.Value, indent+2, flowWidth-indent-len(key)-2)
	}
}

// writeValue writes a value after its key or dash, on the same line if it has room there.
func writeValue(b *strings.Builder, n *Node, indent, room int) {
	leaf := n.Kind == Scalar || n.Kind == Null || len(n.Items)+len(n.Fields) == 0
	if leaf || !holdsListOfMaps(n) {
		var line strings.Builder
		if writeFlow(&line, n, room) || leaf {
			b.WriteString(" " + line.String() + "\n")
			return
		}
	}
	b.WriteString("\n")
	if n.Kind == Map {
		b.WriteString(strings.Repeat(" ", indent))
		writeFields(b, n, indent)
		return
	}
	for _, item := range n.Items {
		b.WriteString(strings.Repeat(" ", indent) + "-")
		writeItem(b, item, indent+2)
	}
}

// writeItem writes an item after its dash; a long map begins on the dash's line.
func writeItem(b *strings.Builder, n *Node, indent int) {
	var line strings.Builder
	fits := !holdsListOfMaps(n) && writeFlow(&line, n, flowWidth-indent)
	if n.Kind == Map && len(n.Fields) > 0 && !fits {
		b.WriteString(" ")
		writeFields(b, n, indent)
		return
	}
	writeValue(b, n, indent, flowWidth-indent)
}

func holdsListOfMaps(n *Node) bool {
	for _, item := range n.Items {
		if item.Kind == Map || holdsListOfMaps(item) {
			return true
		}
	}
	for _, f := range n.Fields {
		if holdsListOfMaps(f.Value) {
			return true
		}
	}
	return false
}

// writeFlow writes n in flow style and reports whether it took at most room bytes; it stops early
// if not (room < 0: never).
func writeFlow(b *strings.Builder, n *Node, room int) bool {
	switch n.Kind {
	case Scalar:
		b.WriteString(scalarText(n.Text, n.Quoted, false))
	case List:
		b.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				b.WriteString(", ")
			}
			if !writeFlow(b, item, room) {
				return false
			}
		}
		b.WriteByte(']')
	case Map:
		b.WriteByte('{')
		for i, f := range n.Fields {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(scalarText(f.Key, false, true) + ": ")
			if !writeFlow(b, f.Value, room) {
				return false
			}
		}
		b.WriteByte('}')
	default:
		b.WriteString("null")
	}
	return room < 0 || b.Len() <= room
}

// scalarText writes a scalar so that it is read back as it is: plain where that is safe, else in
// double quotes. A number may stand plain as a key; as a text it needs its quotes.
func scalarText(text string, quoted, key bool) string {
	plainNumber := !quoted && !key && Ambiguous(text) // of such characters only as are safe
	if (plainNumber || plainSafe(text) && (key || !quoted || !Ambiguous(text))) && !nullWord(text) {
		return text
	}
	return doubleQuote(text)
}

// Ambiguous reports whether text means something else in quotes than without: a number, a truth
// value, or nothing.
func Ambiguous(text string) bool {
	switch strings.ToLower(text) {
	case "true", "false", ".inf", "-.inf", "+.inf", ".nan":
		return true
	}
	if nullWord(text) {
		return true
	}
	first := strings.TrimLeft(text, "+-.")
	return first != "" && first[0] >= '0' && first[0] <= '9' &&
		strings.Trim(first, "0123456789abcdefABCDEFxXoO_.+-") == ""
}

func nullWord(text string) bool {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}

// plainSafe reports whether text can stand without quotes anywhere, in block and in flow style.
func plainSafe(text string) bool {
	if strings.HasSuffix(text, " ") {
		return false
	}
	for i, r := range text {
		letter := r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == 'µ'
		inside := letter || strings.ContainsRune("_./+-()=;%> ", r)
		if i == 0 && !letter && !strings.ContainsRune("_./+-", r) || !inside {
			return false
		}
	}
	if text != "" && (text[0] == '-' || text[0] == '+' || text[0] == '.') {
		return len(text) > 1 && text[1] >= '0' && text[1] <= '9'
	}
	return text != ""
}

// doubleQuote writes text in double quotes with YAML's escapes.
func doubleQuote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r <= 0xff && !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case r > 0xffff && !strconv.IsPrint(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		case !strconv.IsPrint(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
