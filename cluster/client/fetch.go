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

// Fetch copies the record of a run that has ended into a folder that does not exist or is empty. It
// changes nothing in a folder that has this record already: the process's own, or an earlier copy.
// Until the copy is complete, its files are in a folder beside that one, or in it, whose name begins
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
		if has, err := hasRecord(dir, unpack); has || err != nil {
			return err
		}
		return taken
	}
	return assemble(dir, unpack)
}

// hasRecord reports whether a folder has every file of a record with the same bytes. Pages and
// pictures do not count: a command that shows a record draws them again in its folder.
func hasRecord(dir string, unpack func(part string) error) (has bool, err error) {
	if _, err := os.Stat(filepath.Join(dir, record.PlanName)); err != nil {
		return false, nil //nolint:nilerr // a folder without a plan holds no record
	}
	part, err := os.MkdirTemp("", "gradwire-fetch-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(part)) }()
	if err := unpack(part); err != nil {
		return false, err
	}
	has = true
	err = filepath.WalkDir(part, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || slices.Contains(drawn, filepath.Ext(path)) {
			return err
		}
		name, err := filepath.Rel(part, path)
		if err != nil {
			return err
		}
		if has, err = sameFile(path, filepath.Join(dir, name)); err == nil && !has {
			return fs.SkipAll
		}
		return err
	})
	return has, err
}

// drawn are the file name extensions of pages and pictures.
var drawn = []string{".html", ".png", ".svg"}

// sameFile reports whether file b exists, can be read, and has the same bytes as file a.
func sameFile(a, b string) (bool, error) {
	one, err := os.Open(a) //nolint:gosec // made by hasRecord
	if err != nil {
		return false, err
	}
	defer one.Close() //nolint:errcheck // read only
	if about, err := os.Lstat(b); err != nil || !about.Mode().IsRegular() {
		return false, nil //nolint:nilerr // an unreadable file is a different one
	}
	two, err := os.Open(b) //nolint:gosec // in the user's folder
	if err != nil {
		return false, nil //nolint:nilerr // an unreadable file is a different one
	}
	defer two.Close() //nolint:errcheck // read only
	const block = 64 << 10
	for left, right := make([]byte, block), make([]byte, block); ; {
		n, errA := io.ReadFull(one, left)
		m, errB := io.ReadFull(two, right)
		if !bytes.Equal(left[:n], right[:m]) {
			return false, nil
		}
		if errA != nil || errB != nil {
			return ended(errA) && ended(errB), nil
		}
	}
}

// ended reports whether io.ReadFull reached the end of a file.
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
