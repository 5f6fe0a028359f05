package holders

import (
	"io"
	"os"

	"github.com/gradwire/gradwire/cluster/archive"
	"github.com/gradwire/gradwire/cluster/record"
)

// Disk writes into a holder's folder of records. A full disk, a quota or a read-only folder can make
// any step fail.
type Disk interface {
	// MakeFolder makes a folder and its missing parents.
	MakeFolder(path string) error
	// WriteFile replaces a file as a whole.
	WriteFile(path string, text []byte) error
	// Unpack writes the files of an archive into a folder.
	Unpack(from io.Reader, dir string) error
	// Rename moves a file or a folder.
	Rename(from, to string) error
}

// osDisk is the operating system's file system.
type osDisk struct{}

var _ Disk = osDisk{}

func (osDisk) MakeFolder(path string) error { return os.MkdirAll(path, 0o750) }

func (osDisk) WriteFile(path string, text []byte) error { return record.WriteFile(path, text) }

func (osDisk) Unpack(from io.Reader, dir string) error {
	return archive.Unpack(from, dir, archive.Accepted)
}

func (osDisk) Rename(from, to string) error { return os.Rename(from, to) }
