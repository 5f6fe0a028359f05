package published

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gradwire/gradwire/datasets/input"
)

// Progress says how far a download is.
type Progress struct {
	// File is the name of the file, and From the address that it comes from.
	File, From string
	// Done and Total count the bytes of all files of the set.
	Done, Total int64
	// Trouble is why the bytes stopped coming, before the next attempt; nil while they come.
	Trouble error
}

// Getter gets data sets from their mirrors. The zero value gets them as they are announced.
type Getter struct {
	// Mirrors, if there are any, are used in place of the set's own.
	Mirrors []string
	// Client makes the requests. Default: http.DefaultClient.
	Client *http.Client
	// Stall is how long a mirror may send less than 16 KiB before it is given up. Default: 30 s.
	Stall time.Duration
	// Pause is the time before the second attempt at a mirror, doubled for each further one.
	// Default: 1 s.
	Pause time.Duration
	// Progress, if not nil, gets how far it is, from one goroutine.
	Progress func(Progress)
}

// attempts is how often a mirror is asked for a file.
const attempts = 4

// alive is how many bytes show that a mirror has not stalled.
const alive = 16 << 10

// errStalled is why a request is given up.
var errStalled = errors.New("nothing, or next to it, arrived")

// mirrorError is an error that another attempt at the same mirror would meet again.
type mirrorError struct{ error }

func (e mirrorError) Unwrap() error { return e.error }

// fetch is the download of one file.
type fetch struct {
	*Getter
	Download
	part   string // path of what has arrived
	before int64  // bytes of the set's files before this one
	total  int64  // bytes of all of them
}

// Get puts the files of the set that are missing into dir/<set>. What has arrived of a file is kept
// in a file with .part behind its name and continued at the byte where it broke, also by another
// call and from another mirror. Only a file with the published SHA-256 gets its name. The mirrors
// are tried in turn; if none has a file, the error says what was wrong with each.
func (g *Getter) Get(ctx context.Context, s *Set, dir string) error {
	folder := filepath.Join(dir, s.Name)
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // as public as the data sets
		return err
	}
	mirrors := g.Mirrors
	if len(mirrors) == 0 {
		mirrors = s.Mirrors
	}
	f := fetch{Getter: g, total: s.Bytes()}
	for i := range s.Files {
		f.Download = s.Files[i].Download()
		path := filepath.Join(folder, f.Name)
		f.part = path + ".part"
		if err := f.verify(path); err != nil {
			if err := f.get(ctx, mirrors, path); err != nil {
				return fmt.Errorf("data set %s: %w", s.Name, err)
			}
		}
		f.before += f.Size
		f.report(0, "", nil)
	}
	return nil
}

func (f *fetch) report(arrived int64, from string, trouble error) {
	if f.Progress != nil {
		f.Progress(Progress{File: f.Name, From: from, Done: f.before + arrived, Total: f.total, Trouble: trouble})
	}
}

// get gets the file from the first mirror that has it.
func (f *fetch) get(ctx context.Context, mirrors []string, path string) error {
	var faults []error
	for _, mirror := range mirrors {
		from := address(mirror, f.Download)
		err := f.from(ctx, from, path)
		if err == nil || ctx.Err() != nil {
			return err
		}
		var disk *fs.PathError
		if errors.As(err, &disk) {
			return err
		}
		faults = append(faults, fmt.Errorf("%s: %w", from, err))
	}
	kept := ""
	if n := f.arrived(); n > 0 {
		kept = fmt.Sprintf("; the %d bytes that have arrived are kept for the next time", n)
	}
	return fmt.Errorf("%s could not be had from any mirror%s:\n%w", f.Name, kept, errors.Join(faults...))
}

// from gets the file from one mirror, in a few attempts; one that stalls is not waited for again
// unless it had sent something.
func (f *fetch) from(ctx context.Context, from, path string) error {
	pause := f.Pause
	if pause <= 0 {
		pause = time.Second
	}
	for attempt := 1; ; attempt++ {
		before := f.arrived()
		err := f.attempt(ctx, from, path)
		if errors.Is(err, errStalled) && f.arrived() < before+alive {
			return err
		}
		var hopeless mirrorError
		var disk *fs.PathError
		if err == nil || ctx.Err() != nil || errors.As(err, &hopeless) || errors.As(err, &disk) || attempt == attempts {
			return err
		}
		f.report(f.arrived(), from, err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// arrived is how much of the file is there.
func (f *fetch) arrived() int64 {
	info, err := os.Stat(f.part)
	if err != nil {
		return 0
	}
	return info.Size()
}

// attempt makes one request for what is missing, and gives the file its name if it is whole.
func (f *fetch) attempt(ctx context.Context, from, path string) error {
	start := f.arrived()
	if start > f.Size {
		start = 0
	}
	if start < f.Size {
		if err := f.request(ctx, from, start); err != nil {
			return err
		}
	}
	err := f.finish(path)
	if err == nil {
		return nil
	}
	if e := os.Remove(f.part); e != nil {
		return e
	}
	if start > 0 {
		return err // what was there before may be to blame, which the next attempt shows
	}
	return mirrorError{err}
}

// request appends to the part what a mirror sends from an offset on.
func (f *fetch) request(ctx context.Context, from string, start int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return mirrorError{err}
	}
	request.Header.Set("Accept-Encoding", "identity")
	if start > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", start))
	}
	stall := f.Stall
	if stall <= 0 {
		stall = 30 * time.Second
	}
	watch := time.AfterFunc(stall, func() { cancel(fmt.Errorf("%w for %v", errStalled, stall)) })
	defer watch.Stop()
	client := f.Client
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return cause(ctx, err)
	}
	defer func() { _ = response.Body.Close() }() // read only
	if start, err = f.accept(response, start); err != nil {
		return err
	}
	return cause(ctx, f.store(response.Body, from, start, func() { watch.Reset(stall) }))
}

// cause returns why a request was given up, or its own error without the address.
func cause(ctx context.Context, err error) error {
	var request *url.Error
	var lookup *net.DNSError
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return mirrorError{lookup}
	case errors.As(err, &request):
		return request.Err
	}
	return err
}

// accept checks what a mirror says before it sends, and returns the offset of the first byte.
func (f *fetch) accept(r *http.Response, start int64) (int64, error) {
	switch {
	case r.StatusCode == http.StatusOK:
		start = 0
	case r.StatusCode == http.StatusPartialContent && start > 0:
		if want := fmt.Sprintf("bytes %d-%d/", start, f.Size-1); !strings.HasPrefix(r.Header.Get("Content-Range"),
			want) {
			return 0, f.discardPart("it sends %q where %q is expected", r.Header.Get("Content-Range"),
				want+strconv.FormatInt(f.Size, 10))
		}
	case r.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return 0, f.discardPart("it does not send the bytes from %d on", start)
	case r.StatusCode >= 500 || r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusRequestTimeout:
		return 0, fmt.Errorf("status %s", r.Status)
	default:
		return 0, mirrorError{fmt.Errorf("status %s", r.Status)}
	}
	if r.ContentLength >= 0 && r.ContentLength != f.Size-start {
		return 0, mirrorError{fmt.Errorf("it announces %d bytes where %d are expected", r.ContentLength, f.Size-start)}
	}
	return start, nil
}

// discardPart removes the part, so that the next attempt asks for the whole file, and returns an
// error.
func (f *fetch) discardPart(format string, args ...any) error {
	if err := os.Remove(f.part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf(format, args...)
}

// store writes what arrives into the part from an offset on, 0 for a new one.
func (f *fetch) store(body io.Reader, from string, start int64, living func()) (err error) {
	flags := os.O_WRONLY | os.O_CREATE
	if start == 0 {
		if err := os.Remove(f.part); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		flags |= os.O_EXCL
	}
	file, err := os.OpenFile(f.part, flags, 0o644) //nolint:gosec // as public as the data sets
	if err != nil {
		return err
	}
	defer func() {
		if e := file.Close(); err == nil {
			err = e
		}
	}()
	buffer := make([]byte, 64<<10)
	fresh := 0
	for at := start; ; {
		n, fault := body.Read(buffer)
		n = int(min(int64(n), f.Size-at)) // the checksum decides about what is surplus
		if _, err := file.WriteAt(buffer[:n], at); err != nil {
			return err
		}
		at += int64(n)
		if fresh += n; fresh >= alive {
			living()
			fresh = 0
		}
		if at == f.Size {
			return nil
		}
		f.report(at, from, nil)
		switch {
		case errors.Is(fault, io.EOF):
			return fmt.Errorf("it broke off after %d of %d bytes", at, f.Size)
		case fault != nil:
			return fmt.Errorf("it broke off after %d of %d bytes: %w", at, f.Size, fault)
		}
	}
}

// verify returns an error unless the file is there as it was published.
func (f *fetch) verify(path string) error {
	_, err := f.sum(path, io.Discard)
	return err
}

// finish gives the part its name if it is what was published. It copies the bytes that it checks,
// so that nobody who still writes into the part can change them.
func (f *fetch) finish(path string) error {
	checked, err := os.CreateTemp(filepath.Dir(path), f.Name+".*.checked")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(checked.Name()) }() // fails if all went well
	_, fault := f.sum(f.part, checked)
	if err := errors.Join(checked.Chmod(0o644), checked.Sync(), checked.Close()); err != nil {
		return err
	}
	if fault != nil {
		return fault
	}
	if err := os.Rename(checked.Name(), path); err != nil {
		return err
	}
	return os.Remove(f.part)
}

// sum copies a file and compares it with the published checksum.
func (f *fetch) sum(path string, to io.Writer) (int64, error) {
	file, err := input.OpenFile(input.Anywhere, path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // read only
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(h, to), io.LimitReader(file, f.Size+1))
	if err != nil {
		return n, err
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != f.SHA256 {
		return n, fmt.Errorf("%d bytes arrived with SHA-256 %s; the published %d bytes have %s", n, sum,
			f.Size, f.SHA256)
	}
	return n, nil
}
