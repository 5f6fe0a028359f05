//go:build unix

package input

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Nothing but a regular file is opened, and nothing blocks.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for name, want := range map[string]string{"pipe": "a named pipe", "socket": "a socket", ".": "a folder"} {
		for _, open := range []func() (*os.File, error){
			func() (*os.File, error) { return OpenFile(root, name) },
			func() (*os.File, error) { return OpenFile(Anywhere, filepath.Join(dir, name)) },
		} {
			if _, err := open(); err == nil || !strings.Contains(err.Error(), "this is "+want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := OpenFile(Anywhere, os.DevNull); err == nil || !strings.Contains(err.Error(), "this is a device") {
		t.Errorf("%s: %v", os.DevNull, err)
	}
	f, err := OpenFile(root, "file")
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}
