package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gradwire/gradwire/cluster/archive"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/protos"
)

// Fetch copies the record of a run that has ended into a folder that does not exist or is empty. A
// folder that has the very record, because it is the process's own or a former copy, is left as it
// is. Until all of it has come the copy lies in a folder beside that one, or in it, whose name begins
// with .partial-.
func (c *Client) Fetch(ctx context.Context, id, dir string) error {
	var content *pieces
	err := locate(ctx, func() error {
		address, s, err := c.keeper(ctx, id)
		if err != nil {
			return err
		}
		t, err := c.ask(
			ctx,
			address,
			&protos.Request{Kind: &protos.Request_Fetch{Fetch: &protos.FetchRecord{Id: s.ID}}},
		)
		if err != nil {
			return err
		}
		content = &pieces{of: t}
		if err := content.await(); err != nil && !errors.Is(err, io.EOF) {
			t.close()
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer content.of.close()
	unpack := func(part string) error { return archive.Unpack(content, part, archive.Accepted) }
	if taken := Vacant(dir); taken != nil {
		return present(dir, taken, unpack)
	}
	return assemble(dir, unpack)
}

// present returns nil if a folder has every file of a record, as it was made, but for what is drawn
// from it, and else the error taken.
func present(dir string, taken error, unpack func(part string) error) (err error) {
	if _, err := os.Stat(filepath.Join(dir, record.PlanName)); err != nil {
		return taken // it is no record, and nothing needs to be sent
	}
	part, err := os.MkdirTemp("", "gradwire-fetch-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(part)) }()
	if err := unpack(part); err != nil {
		return err
	}
	return filepath.WalkDir(part, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || slices.Contains(drawn, filepath.Ext(path)) {
			return err
		}
		name, err := filepath.Rel(part, path)
		if err != nil {
			return err
		}
		if same, err := sameFile(path, filepath.Join(dir, name)); err != nil || !same {
			return cmp.Or(err, taken)
		}
		return nil
	})
}

// drawn are the endings of files that whoever shows a record draws in its folder.
var drawn = []string{".html", ".png", ".svg"}

// sameFile reports whether two files have the same bytes. One that is not there has none.
func sameFile(a, b string) (bool, error) {
	one, err := os.Open(a) //nolint:gosec // just made
	if err != nil {
		return false, err
	}
	defer one.Close() //nolint:errcheck // it was only read
	if about, err := os.Lstat(b); err != nil || !about.Mode().IsRegular() {
		return false, nil //nolint:nilerr // what cannot be read is not the file
	}
	two, err := os.Open(b) //nolint:gosec // in the folder that the user names
	if err != nil {
		return false, nil //nolint:nilerr // as above
	}
	defer two.Close() //nolint:errcheck // it was only read
	for left, right := make([]byte, compared), make([]byte, compared); ; {
		n, errA := io.ReadFull(one, left)
		m, errB := io.ReadFull(two, right)
		if !bytes.Equal(left[:n], right[:m]) {
			return false, nil
		}
		if errA != nil || errB != nil { // both end here, or one cannot be read further
			return ended(errA) && ended(errB), nil
		}
	}
}

// compared is how many bytes of two files are compared at a time.
const compared = 64 << 10

func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// assemble makes a folder as a whole or not at all. Into one that is there already, which must be
// empty, the files come at the end, the summary as the last.
func assemble(dir string, write func(part string) error) (err error) {
	dir = filepath.Clean(dir)
	_, missing := os.Stat(dir)
	around := dir
	if missing != nil {
		around = filepath.Dir(dir)
	}
	if err := os.MkdirAll(around, 0o750); err != nil {
		return refusal.Input(err)
	}
	part, err := os.MkdirTemp(around, ".partial-"+filepath.Base(dir)+"-")
	if err != nil {
		return refusal.Input(err)
	}
	defer func() {
		if _, left := os.Stat(part); left == nil {
			err = errors.Join(err, os.RemoveAll(part))
		}
	}()
	if err := write(part); err != nil {
		return err
	}
	if missing != nil {
		return errors.Join(os.Chmod(part, 0o750), os.Rename(part, dir)) //nolint:gosec // as other folders of records
	}
	entries, err := os.ReadDir(part)
	if err != nil {
		return err
	}
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(lastFile(a), lastFile(b)) })
	for _, e := range entries {
		if err := os.Rename(filepath.Join(part, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// lastFile orders the file behind all others by which a record counts as whole.
func lastFile(e fs.DirEntry) int {
	if e.Name() == "summary.json" {
		return 1
	}
	return 0
}

// Vacant returns an InputError for a folder that no record can be copied into, because something is
// in it.
func Vacant(dir string) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return refusal.Input(fmt.Errorf("%s: %w", dir, record.ErrExists))
	}
	return nil
}

// pieces reads the portions of an archive.
type pieces struct {
	of   *conversation
	left []byte
}

func (p *pieces) Read(b []byte) (int, error) {
	if err := p.await(); err != nil {
		return 0, err
	}
	n := copy(b, p.left)
	p.left = p.left[n:]
	return n, nil
}

// await waits until there is something to read.
func (p *pieces) await() error {
	for len(p.left) == 0 {
		r, err := p.of.next()
		if err != nil {
			return err
		}
		if r.GetDone() != nil {
			return io.EOF
		}
		p.left = r.GetPortion().GetBytes()
	}
	return nil
}
