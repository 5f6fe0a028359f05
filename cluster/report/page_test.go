package report

import (
	"os"
	"path/filepath"
	"testing"
)

func BenchmarkPage(b *testing.B) {
	dir := os.Getenv("PAGE")
	for b.Loop() {
		s, err := ReadSources([]string{dir})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := WritePage(filepath.Join(b.TempDir(), "x.html"), s); err != nil {
			b.Fatal(err)
		}
	}
}
