package input

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func compressed(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// open reads the first bytes of a content.
func open(t testing.TB, r io.Reader, first int) *Reader {
	t.Helper()
	d, err := New(r, "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(d, make([]byte, first)); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestHoldsCountsWhatFollowsAndLosesNothing(t *testing.T) {
	content := slices.Repeat([]byte("0123456789abcdef"), (free+1600)/16)
	for name, file := range map[string][]byte{"plain": content, "gzip": compressed(t, content)} {
		d := open(t, bytes.NewReader(file), 16)
		rest := int64(len(content) - 16)
		for n, want := range map[int64]string{
			rest:     "",
			rest + 1: "the file ends too early",
			rest - 1: "trailing bytes",
			1 << 40:  "the file ends too early",
			free:     "", // not looked at
		} {
			err := d.Holds(n)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %d: error %v, want %q", name, n, err, want)
			}
		}
		if d.Offset() != 16 {
			t.Errorf("%s: at offset %d", name, d.Offset())
		}
		got, err := io.ReadAll(d)
		if err != nil || !bytes.Equal(got, content[16:]) {
			t.Errorf("%s: other bytes follow: %v", name, err)
		}
	}
	if err := open(t, iotest.OneByteReader(bytes.NewReader(content)), 1).Holds(free + 1); err == nil ||
		!strings.Contains(err.Error(), "cannot be known") {
		t.Errorf("error %v", err)
	}
}

func TestAFileThatExpandsTooFarIsRefused(t *testing.T) {
	zeros := compressed(t, make([]byte, Slack+(4<<20)))
	n, err := io.Copy(io.Discard, struct{ io.Reader }{open(t, bytes.NewReader(zeros), 1)})
	if err == nil || !strings.Contains(err.Error(), "compressed bytes have become") || n > Slack+(1<<17) {
		t.Errorf("error %v after %d bytes", err, n)
	}
}

func TestContentBeyondTheLimitIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a gibibyte")
	}
	n, err := io.Copy(io.Discard, struct{ io.Reader }{open(t, io.LimitReader(endless{}, 2*MaxBytes), 1)})
	if err == nil || !strings.Contains(err.Error(), "more than 1073741824 bytes of content") || n > MaxBytes+(1<<17) {
		t.Errorf("error %v after %d bytes", err, n)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestLinesAreNumberedAndLoseTheirEnds(t *testing.T) {
	for text, want := range map[string][]string{
		"":            nil,
		"a":           {"a"},
		"a\n":         {"a"},
		"a\r\nb\n":    {"a", "b"},
		"\n\na":       {"", "", "a"},
		"a\r":         {"a"},
		"12345678\nb": {"12345678", "b"},
	} {
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)),
			bytes.NewReader(compressed(t, []byte(text)))} {
			d := open(t, r, 0)
			var got []string
			err := d.Lines("text", 16, func(number int, line []byte) error {
				if got = append(got, string(line)); number != len(got) {
					t.Errorf("%q: line %d is numbered %d", text, len(got), number)
				}
				return nil
			})
			if err != nil || !slices.Equal(got, want) || d.Offset() != int64(len(text)) {
				t.Errorf("%q: %q at offset %d: %v", text, got, d.Offset(), err)
			}
		}
	}
}

func TestErrorsOfLinesTellTheirNumber(t *testing.T) {
	own := errors.New("own")
	broken := io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(own))
	for want, r := range map[string]io.Reader{
		"f:2: line longer than 16 bytes, beginning \"bbbbbbbbbbbbbbbbb\"": strings.NewReader(
			"a\n" + strings.Repeat("b", 17)),
		"f:2: own":                     broken,
		"f:1: the file ends too early": bytes.NewReader(compressed(t, []byte("abc"))[:14]),
	} {
		if err := open(t, r, 0).Lines("text", 16, func(int, []byte) error { return nil }); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	err := open(t, strings.NewReader("a\nb\nc"), 0).Lines("text", 16, func(number int, _ []byte) error {
		if number == 2 {
			return own
		}
		return nil
	})
	if !errors.Is(err, own) || err.Error() != "f:2: own" {
		t.Errorf("error %v", err)
	}
}

func TestLinesMayBeLongerThanAnyBuffer(t *testing.T) {
	for _, n := range []int{1<<16 - 1, 1 << 16, 1<<16 + 1, 200_000, MaxLine - 1, MaxLine} {
		text := "a\n" + strings.Repeat("b", n) + "\nc"
		var lengths []int
		err := open(t, strings.NewReader(text), 0).Lines("text", MaxLine, func(_ int, line []byte) error {
			lengths = append(lengths, len(line))
			return nil
		})
		if n < MaxLine && (err != nil || !slices.Equal(lengths, []int{1, n, 1})) {
			t.Errorf("%d: lengths %v: %v", n, lengths, err)
		}
		if n == MaxLine && (err == nil || !strings.HasPrefix(err.Error(),
			"f:2: line longer than 1048576 bytes, beginning \"bbb")) {
			t.Errorf("%d: error %v", n, err)
		}
	}
}

func TestChunksAreAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Chunks[int16]
		var want []int16
		for range rapid.IntRange(0, 20).Draw(t, "times") {
			part := rapid.SliceOfN(rapid.Int16(), 0, 300).Draw(t, "part")
			c.Append(part...)
			want = append(want, part...)
		}
		if c.Len() != len(want) || c.Bytes() != int64(2*len(want)) {
			t.Fatalf("%d elements of %d bytes, want %d", c.Len(), c.Bytes(), len(want))
		}
		if got := c.Slice(); !slices.Equal(got, want) || c.Len() != 0 {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
