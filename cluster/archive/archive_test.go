package archive_test

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/archive"
)

// files are those of a folder with their content, by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFolderIsTheSameBehindAStream(t *testing.T) {
	from := t.TempDir()
	for name, text := range map[string]string{"plan.yaml": "name: x", "runs/0000/run.json": "{}", "runs/0001/m": "",
		"log.txt": strings.Repeat("line\n", 100_000)} {
		path := filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, only := range []string{"", "runs/"} {
		var wanted func(string, fs.FileInfo) bool
		if only != "" {
			wanted = func(name string, _ fs.FileInfo) bool { return strings.HasPrefix(name, only) }
		}
		var stream bytes.Buffer
		if err := archive.Pack(&stream, from, wanted); err != nil {
			t.Fatal(err)
		}
		stream.WriteString("more")
		to := t.TempDir()
		if err := archive.Unpack(&stream, to, archive.Accepted); err != nil {
			t.Fatal(err)
		}
		if stream.String() != "more" {
			t.Errorf("what follows the archive is %q", stream.String())
		}
		got := files(t, to)
		for name, text := range files(t, from) {
			if is, there := got[name]; there != strings.HasPrefix(name, only) || there && is != text {
				t.Errorf("only %q: %s is there: %v, with %d bytes", only, name, there, len(is))
			}
		}
	}
}

func TestFolderThatIsRenamedMeanwhileIsNotTakenForWhole(t *testing.T) {
	from := filepath.Join(t.TempDir(), "a")
	for _, name := range []string{"1", "2"} {
		if err := os.MkdirAll(from, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var stream bytes.Buffer
	err := archive.Pack(&stream, from, func(name string, _ fs.FileInfo) bool {
		if name == "2" {
			if err := os.Rename(from, from+"b"); err != nil {
				t.Error(err)
			}
		}
		return name == "1"
	})
	if err == nil {
		t.Error("what was renamed away is packed")
	}
	err = archive.Unpack(&stream, t.TempDir(), archive.Accepted)
	if err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("an archive that was given up: %v", err)
	}
}

func TestStreamThatBreaksOffBetweenFilesIsCutShort(t *testing.T) {
	var stream bytes.Buffer
	out := tar.NewWriter(&stream)
	if err := out.WriteHeader(&tar.Header{Name: "x", Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	err := archive.Unpack(&stream, t.TempDir(), archive.Accepted)
	if err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("got %v", err)
	}
}

func TestNothingIsWrittenElsewhereOrTwice(t *testing.T) {
	for what, heads := range map[string][]tar.Header{
		"outside":    {{Name: "../x", Typeflag: tar.TypeReg}},
		"absolute":   {{Name: "/x", Typeflag: tar.TypeReg}},
		"a link":     {{Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}},
		"twice":      {{Name: "x", Typeflag: tar.TypeReg}, {Name: "x", Typeflag: tar.TypeReg}},
		"cut short":  {{Name: "x", Typeflag: tar.TypeReg, Size: 1 << 20}},
		"a folder":   {{Name: "x/", Typeflag: tar.TypeDir}},
		"under file": {{Name: "x", Typeflag: tar.TypeReg}, {Name: "x/y", Typeflag: tar.TypeReg}},
	} {
		var stream bytes.Buffer
		out := tar.NewWriter(&stream)
		for _, h := range heads {
			if err := out.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		_ = out.Close() // of what is cut short that is an error
		dir := filepath.Join(t.TempDir(), "in")
		if err := os.Mkdir(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := archive.Unpack(&stream, dir, archive.Accepted); err == nil {
			t.Errorf("%s: accepted", what)
		}
		if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 1 {
			t.Errorf("%s: %v beside the folder, %v", what, entries, err)
		}
	}
}

// entries writes an archive of empty or claimed files.
func entries(t *testing.T, heads ...*tar.Header) *bytes.Buffer {
	t.Helper()
	var stream bytes.Buffer
	out := tar.NewWriter(&stream)
	for _, h := range heads {
		h.Mode, h.Format = 0o644, tar.FormatPAX
		if err := out.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size <= 100 {
			if _, err := out.Write(make([]byte, h.Size)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return &stream
}

func TestArchiveBeyondTheLimitsIsRefusedWithTheLimit(t *testing.T) {
	most := archive.Limits{Files: 3, Bytes: 200, Name: 20, Depth: 2}
	one := func(name string, size int64) *tar.Header { return &tar.Header{Name: name, Size: size} }
	for _, c := range []struct {
		heads []*tar.Header
		want  string
	}{
		{[]*tar.Header{one("a", 0), one("b", 0), one("c", 0), one("d", 0)}, "more than 3 files"},
		{[]*tar.Header{one("a", 100), one("b", 100), one("c", 1)},
			"file \"c\" of 1 bytes behind 200 bytes of others; accepted are at most 200"},
		{[]*tar.Header{one("a", 1<<40)}, "accepted are at most 200 in all"},
		{[]*tar.Header{one("a", 100), one("b", 1<<63-1)}, "accepted are at most 200 in all"},
		{[]*tar.Header{one(strings.Repeat("x", 21), 0)}, "takes 21 bytes; accepted are at most 20"},
		{[]*tar.Header{one("a/b/c/d", 0)}, "in 3 folders; accepted are at most 2"},
	} {
		dir := t.TempDir()
		err := archive.Unpack(entries(t, c.heads...), dir, most)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
		total := 0
		for _, text := range files(t, dir) {
			total += len(text)
		}
		if total > 200 {
			t.Errorf("%d bytes were written", total)
		}
	}
}
