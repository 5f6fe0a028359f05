package membership

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestMetadataSurviveTheirEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-zé_]{1,20}`)
		a := announcement{
			Meta: Meta{
				Role:        rapid.StringMatching(`[a-z]{0,32}`).Draw(t, "role"),
				Address:     rapid.StringMatching(`[a-z]{1,60}:[1-9][0-9]{0,3}`).Draw(t, "address"),
				Incarnation: rapid.Uint64Min(1).Draw(t, "incarnation"),
				Cores:       rapid.IntRange(0, maxCores).Draw(t, "cores"),
				Build:       rapid.StringMatching(`[a-z0-9.]{0,64}`).Draw(t, "build"),
			},
			leaving:  rapid.Bool().Draw(t, "leaving"),
			draining: rapid.Bool().Draw(t, "draining"),
		}
		if labels := rapid.MapOfN(word, word, 0, 6).Draw(t, "labels"); len(labels) > 0 {
			a.Labels = labels
		}
		b, err := a.encode()
		if err != nil {
			if strings.Contains(err.Error(), "at most 512 are carried") {
				return
			}
			t.Fatal(err)
		}
		got, err := decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a, got, cmp.AllowUnexported(announcement{})); diff != "" {
			t.Fatal(diff)
		}
		for n := range b {
			if _, err := decode(b[:n]); err == nil {
				t.Fatalf("%d of %d bytes were accepted", n, len(b))
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, a := range []announcement{
		{Meta: Meta{Address: "a:1", Incarnation: 1}},
		{Meta: Meta{Role: "server", Address: "10.0.0.1:7000", Incarnation: 1 << 60, Cores: 8,
			Labels: map[string]string{"a": "b", "c": ""}, Build: "v1.2"}, leaving: true},
	} {
		b, err := a.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{protocol, 0, 0, 1, 0, 0, 3, 'a', ':', '1', 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{protocol, 0, 0, 0x81, 0, 0, 0, 3, 'a', ':', '1', 0}) // a number longer than need be
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := decode(b)
		if err != nil {
			return
		}
		if again, err := a.encode(); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%x was accepted but is written %x (%v)", b, again, err)
		}
	})
}
