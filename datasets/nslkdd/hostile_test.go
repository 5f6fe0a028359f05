package nslkdd

import (
	"bytes"
	"testing"

	"github.com/gradwire/gradwire/datasets/hostile"
)

// hostiles are the files of testdata/hostile.
var hostiles = []hostile.File{
	{"empty", "The file is empty.", "no records; lines of 43 comma-separated fields are expected"},
	{"42-fields", "A field is missing.", `:2: 42 comma-separated fields in "tcp,`},
	{"44-fields", "There is a field too many.", ":1: 44 comma-separated fields"},
	{"header", "The file has a header.", `:1: column 1 (duration): "duration" is not a number`},
	{"protocol-unknown", "A protocol is none of the three.",
		`:1: column 2 (protocol_type): unknown value "sctp"; there are icmp, tcp, udp`},
	{"service-case", "A service is written in capitals.", `:1: column 3 (service): unknown value "HTTP"; there are`},
	{"attack-unknown", "An attack was not known in 1999.", ":2: column 42 ("},
	{"number-negative", "A number of bytes is negative.", `:1: column 5 (src_bytes): "-1" is not a number from 0`},
	{"rate-2", "A rate is above 1.", `:1: column 25 (serror_rate): "2.00" is not a number from 0 to 1`},
	{"number-1e999", "A number is beyond any float.", `:1: column 1 (duration): "1e999" is not a number`},
	{"number-nan", "A number is not one, which float parsers accept.", `:1: column 23 (count): "nan" is not a number`},
	{"long-line", "A line is longer than any record.", ":2: line longer than 4096 bytes"},
	{"utf-16", "The text is in UTF-16.", ": this is text in UTF-16"},
	{"gzip-cut", "The compressed file ends early.", "the file ends too early"},
}

func TestHostileFilesAreRefused(t *testing.T) {
	hostile.Check(t, hostiles, func(_, name string, content []byte) error {
		_, err := Read(bytes.NewReader(content), name, Encoding122)
		return err
	})
}
