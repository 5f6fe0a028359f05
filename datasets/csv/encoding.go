package csv

import "unicode/utf8"

// Encoding says how the characters of a text are written as bytes.
type Encoding string

const (
	// UTF8 is one byte for ASCII and several for other characters.
	UTF8 Encoding = "utf-8"
	// Windows1252 is a byte a character: Latin-1, with the printable characters of windows1252 in
	// the place of controls.
	Windows1252 Encoding = "windows-1252"
)

// windows1252 maps the bytes 0x80 to 0x9f to characters.
var windows1252 = []rune("€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")

// decode returns a line of Windows-1252 in UTF-8, valid until the next call.
func (t *table) decode(line []byte) []byte {
	t.decoded = t.decoded[:0]
	for _, b := range line {
		r := rune(b)
		if b >= 0x80 && b < 0xa0 {
			r = windows1252[b-0x80]
		}
		t.decoded = utf8.AppendRune(t.decoded, r)
	}
	return t.decoded
}
