package published

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/datasets/input"
)

func compressed(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFilesAreFoundInEitherFolderWithOrWithoutGz(t *testing.T) {
	for _, place := range []string{"small/second", "small/second.gz", "second", "second.gz"} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, place), nil)
		if err := os.MkdirAll(filepath.Join(dir, "small", "a+b.txt"), 0o700); err != nil {
			t.Fatal(err)
		}
		got, err := small().Locate(dir, "second")
		if err != nil || got != filepath.Join(dir, filepath.FromSlash(place)) {
			t.Errorf("%s: found %s: %v", place, got, err)
		}
		if _, err := small().Locate(dir, "a+b.txt"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a folder was taken for a file: %v", err)
		}
	}
}

func TestAMissingFileIsToldWithWhereAndHowToGetIt(t *testing.T) {
	dir := t.TempDir()
	_, err := small().Locate(dir, "second")
	for _, want := range []string{"data set small: second (or second.gz) is neither in " + filepath.Join(dir, "small") +
		" nor in " + dir, "gradwire data get small", "http://example.org"} {
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestCheckTellsAFileThatIsNotAsItWasPublished(t *testing.T) {
	good := content("second")
	changed := bytes.Clone(good)
	changed[7] ^= 1
	cut := compressed(t, good)
	for name, c := range map[string]struct {
		file    string
		content []byte
		want    string
	}{
		"plain":      {"second", good, ""},
		"compressed": {"second.gz", compressed(t, good), ""},
		"changed":    {"second", changed, "second: the content has SHA-256 "},
		"short": {"second", good[:1000],
			"cut short: 1000 bytes of content; the published file has 300007; delete it and get it again"},
		"cut off": {"second.gz", cut[:len(cut)-9], "second.gz: offset 300007: the file is damaged: "},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "small", "a+b.txt"), content("a+b.txt"))
		write(t, filepath.Join(dir, "small", c.file), c.content)
		paths, err := small().Check(dir)
		switch {
		case c.want == "" && (err != nil || len(paths) != 2):
			t.Errorf("%s: %q, %v", name, paths, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
	}
}

func TestEverySetIsDescribed(t *testing.T) {
	for _, s := range All() {
		if s.Name == "" || s.About == "" || s.Licence == "" || s.Samples == 0 || s.Features == 0 || s.Classes == 0 ||
			len(s.Mirrors) == 0 {
			t.Errorf("%+v", s)
		}
		for _, address := range append(s.Mirrors, s.Page) {
			if u, err := url.Parse(address); err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") {
				t.Errorf("%s: address %s: %v", s.Name, address, err)
			}
		}
		for _, f := range s.Files {
			for _, sum := range []string{f.SHA256, f.Download().SHA256} {
				if b, err := hex.DecodeString(sum); err != nil || len(b) != 32 {
					t.Errorf("%s: %s is no SHA-256", f.Name, sum)
				}
			}
		}
	}
	if _, ok := Find("mnist"); !ok {
		t.Error("mnist is not found")
	}
	if _, ok := Find("emnist"); ok {
		t.Error("emnist is found")
	}
}

func TestThePublishedFilesHaveTheseChecksums(t *testing.T) {
	dir := os.Getenv("GRADWIRE_DATA")
	if dir == "" {
		t.Skip("GRADWIRE_DATA does not name a folder with the published data sets")
	}
	for _, s := range All() {
		if _, err := s.Check(dir); err != nil {
			t.Error(err)
		}
		for _, f := range s.Files {
			path, err := s.Locate(dir, f.Name)
			if err != nil || f.Packed == nil {
				continue
			}
			b, err := os.ReadFile(path)
			if err != nil || sum(b) != f.Packed.SHA256 || int64(len(b)) != f.Packed.Size {
				t.Errorf("%s has %d bytes with SHA-256 %s: %v", path, len(b), sum(b), err)
			}
		}
	}
}

func TestFilesThatWereReadAreComparedWithThosePublished(t *testing.T) {
	content := []byte("duration,class\n0,normal\n1,probe\n2,dos\n")
	before := sets
	defer func() { sets = before }()
	sets = append(slices.Clone(sets), Set{Name: "tiny",
		Files: []File{{Name: "tiny.txt", Size: int64(len(content)), SHA256: sum(content)}}})
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"whole": {content, ""},
		// at a line's end
		"cut":    {content[:24], "tiny.txt: the file is cut short: 24 bytes of content; the published file has 38"},
		"longer": {append(slices.Clone(content), '0'), "tiny.txt: 39 bytes of content; the published file has 38"},
		"changed": {bytes.Replace(content, []byte("probe"), []byte("prove"), 1),
			"the published file has " + sum(content)},
	} {
		for _, suffix := range []string{"", ".gz"} {
			dir := t.TempDir()
			path := filepath.Join(dir, "tiny", "tiny.txt"+suffix)
			if b := c.content; suffix == "" {
				write(t, path, b)
			} else {
				write(t, path, compressed(t, b))
			}
			text, file, err := Open(dir, "tiny", "tiny.txt",
				func(r io.Reader, _ string) ([]byte, error) { return io.ReadAll(r) })
			if err != nil || !bytes.Equal(text, c.content) {
				t.Fatalf("%s%s: %q, %v", name, suffix, text, err)
			}
			err = Verify("tiny", []input.File{{Name: "LICENCE"}, file})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%s%s: %v", name, suffix, err)
			case c.want != "" && (err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), ".gz", ""), c.want)):
				t.Errorf("%s%s: error %v, want %q", name, suffix, err, c.want)
			}
			if want := (input.File{Path: path, Name: "tiny.txt", Size: int64(len(c.content)),
				SHA256: sum(c.content)}); !reflect.DeepEqual(file, want) {
				t.Errorf("%s%s: %+v, want %+v", name, suffix, file, want)
			}
		}
	}
}
