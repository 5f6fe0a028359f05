package link_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/lines"
)

func TestReadTraceReadsWhatIsWritten(t *testing.T) {
	for _, text := range []string{
		"time_s,delay_s\n0,0.05\n0.5,1e-3\n1.000000001,60\n",
		"time_s,delay_s\r\n0,0.05\r\n0.5,1e-3\r\n1.000000001,60",
		"# measured\n\ntime_s,delay_ms # half of round trips\n0,50\n\n0.5,1 # fast\n#\n1.000000001,60000\n",
		"time_ms,delay_us\n0,50e3\n500,1000\n1000.000001,6e7",
	} {
		got, _, err := link.ReadTrace(iotest.OneByteReader(strings.NewReader(text)), "t.csv")
		if err != nil {
			t.Fatal(err)
		}
		want := []link.Point{{At: 0, Delay: 50 * ms}, {At: 500 * ms, Delay: ms},
			{At: time.Second + 1, Delay: time.Minute}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestReadTraceSaysWhatIsWrongAndWhere(t *testing.T) {
	const head = "time_s,delay_s\n"
	for _, c := range []struct{ text, want string }{
		{"", "t.csv:1: empty file"},
		{head, "t.csv:2: no points"},
		{"time,delay\n1,2\n", `t.csv:1: header "time,delay", expected "time_s,delay_s"`},
		{head + "1\n", `t.csv:2: "1" has 1 fields, expected 2`},
		{head + "1,2,3\n", `t.csv:2: "1,2,3" has 3 fields, expected 2`},
		{"# only\n\n# comments", "t.csv:4: empty file"},
		{"# a\ntime_h,delay_s\n",
			`t.csv:2: header "time_h,delay_s", expected "time_s,delay_s"; for seconds there may be ms or us`},
		{"time_s,time_s\n", `t.csv:1: header "time_s,time_s"`},
		{"delay_s,time_s\n", `t.csv:1: header "delay_s,time_s"`},
		{"time_s\n", `t.csv:1: header "time_s"`},
		{"time_ms,delay_us\n\n2,1\n1,x\n", `t.csv:4: delay_us "x", expected a decimal number from 0 to 31536000000000`},
		{head + "1,2\n  \n", `t.csv:3: "  " has 1 fields`},
		{head + "1,2\n1,3\n", `t.csv:3: time_s in "1,3" is not after the previous line's (1s)`},
		{head + "1,2\n0.5,3\n", `t.csv:3: time_s in "0.5,3"`},
		{head + "1,-2\n", `t.csv:2: delay_s "-2", expected a decimal number from 0 to 31536000`},
		{head + "x,2\n", `t.csv:2: time_s "x"`},
		{head + "1,1e999\n", `t.csv:2: delay_s "1e999"`},
		{head + "1,1e9\n", `t.csv:2: delay_s "1e9"`},
		{head + "1,NaN\n", `t.csv:2: delay_s "NaN"`},
		{head + "1,Inf\n", `t.csv:2: delay_s "Inf"`},
		{head + "0x1p4,1\n", `t.csv:2: time_s "0x1p4"`},
		{head + "1, 2\n", `t.csv:2: delay_s " 2"`},
		{head + "1,2\n" + strings.Repeat("9", 1000),
			`t.csv:3: line "99999999999999999999999999999999"… is longer than 256 bytes`},
	} {
		points, _, err := link.ReadTrace(strings.NewReader(c.text), "t.csv")
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.40q: error %v, want %q", c.text, err, c.want)
		}
		if points != nil {
			t.Errorf("%.40q: points with an error", c.text)
		}
	}
	if _, _, err := link.ReadTrace(iotest.ErrReader(io.ErrClosedPipe), "t.csv"); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the reader's error is not in %v", err)
	}
}

func TestReadTraceIsBounded(t *testing.T) {
	var text bytes.Buffer
	text.WriteString("time_s,delay_s\n")
	for i := range lines.MaxPoints {
		fmt.Fprintf(&text, "%d,0\n", i)
	}
	full := text.Bytes()
	points, _, err := link.ReadTrace(bytes.NewReader(full), "t.csv")
	if err != nil || len(points) != lines.MaxPoints {
		t.Fatalf("%d points, %v", len(points), err)
	}
	endless := io.MultiReader(bytes.NewReader(full), strings.NewReader("2000000,0\n"),
		iotest.ErrReader(io.ErrNoProgress))
	_, _, err = link.ReadTrace(endless, "t.csv")
	if err == nil || !strings.HasPrefix(err.Error(), "t.csv:1000002: more than 1000000 points") {
		t.Errorf("error %v", err)
	}
	comments := strings.Repeat("#\n", 2*lines.MaxPoints+1)
	_, _, err = link.ReadTrace(io.MultiReader(strings.NewReader(comments), iotest.ErrReader(io.ErrNoProgress)), "t.csv")
	if err == nil || !strings.HasPrefix(err.Error(), "t.csv:2000001: more than 2000000 lines") {
		t.Errorf("error %v", err)
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add([]byte("time_s,delay_s\n0,0.05\n0.5,1e-3\n"))
	f.Add([]byte("time_s,delay_s\r\n1,1e999\r\n"))
	f.Add([]byte("time_s,delay_s\n-0,+0\n.5,5."))
	f.Add([]byte("#\ntime_us,delay_ms # x\n\n0,1\n1e3,2"))
	f.Fuzz(func(t *testing.T, data []byte) {
		points, _, err := link.ReadTrace(bytes.NewReader(data), "t.csv")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "t.csv:") || points != nil {
				t.Fatalf("%d points, error %v", len(points), err)
			}
			return
		}
		if err := (link.Trace{Points: points}).Validate(); err != nil {
			t.Fatal(err)
		}
	})
}
