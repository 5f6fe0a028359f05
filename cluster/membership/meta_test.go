package membership

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/cluster/protocol"
)

func TestMetadataSurviveTheirEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-zé_]{1,20}`)
		spoken := protocol.Range{Oldest: rapid.ByteMin(protocol.Negotiated).Draw(t, "oldest")}
		spoken.Newest = rapid.ByteMin(spoken.Oldest).Draw(t, "newest")
		a := announcement{
			Meta: Meta{
				Role:        rapid.StringMatching(`[a-z]{0,32}`).Draw(t, "role"),
				Address:     rapid.StringMatching(`[a-z]{1,60}:[1-9][0-9]{0,3}`).Draw(t, "address"),
				Incarnation: rapid.Uint64Min(1).Draw(t, "incarnation"),
				Cores:       rapid.IntRange(0, maxCores).Draw(t, "cores"),
				Build:       rapid.StringMatching(`[a-z0-9.]{0,64}`).Draw(t, "build"),
				Catalog:     rapid.StringMatching(`[0-9a-f]{0,32}`).Draw(t, "catalog"),
				Protocol:    spoken,
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
		got, err := decode(b, spoken)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a, got, cmp.AllowUnexported(announcement{})); diff != "" {
			t.Fatal(diff)
		}
		for n := range b {
			if _, err := decode(b[:n], spoken); err == nil {
				t.Fatalf("%d of %d bytes were accepted", n, len(b))
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	spoken := protocol.Of(protocol.Negotiated)
	for _, a := range []announcement{
		{Meta: Meta{Address: "a:1", Incarnation: 1, Protocol: spoken}},
		{Meta: Meta{Role: "server", Address: "10.0.0.1:7000", Incarnation: 1 << 60, Cores: 8,
			Labels: map[string]string{"a": "b", "c": ""}, Build: "v1.2", Protocol: spoken}, leaving: true},
	} {
		b, err := a.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{5, 0, 5, 0, 1, 0, 0, 3, 'a', ':', '1', 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{5, 0, 5, 0, 0x81, 0, 0, 0, 3, 'a', ':', '1', 0, 0}) // an overlong number
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := decode(b, spoken)
		if err != nil || a.Protocol != spoken {
			return
		}
		if again, err := a.encode(); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%x was accepted but is written %x (%v)", b, again, err)
		}
	})
}

// A later build adds fields at the end of its metadata. An earlier build ignores them if both have
// a version in common.
func TestMetadataOfALaterBuildCanBeRead(t *testing.T) {
	own := protocol.Of(5)
	later := Meta{Address: "a:1", Incarnation: 1, Build: "v9", Protocol: protocol.Range{Oldest: 5, Newest: 6}}
	b, err := (&announcement{Meta: later}).encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(append(b, "more"...), own)
	if err != nil || got.Address != "a:1" || got.Protocol != later.Protocol {
		t.Errorf("%+v, %v", got, err)
	}
	later.Protocol = own
	if b, err = (&announcement{Meta: later}).encode(); err != nil {
		t.Fatal(err)
	}
	if _, err := decode(append(b, "more"...), own); err == nil {
		t.Error("decode accepted metadata of this version with bytes after the last field")
	}
}
