package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gradwire/gradwire/cluster/record/lockfile"
)

// Uploader copies a folder to a store whenever it changes. Methods may be called from several
// goroutines.
type Uploader struct {
	// Dir is the folder.
	Dir string
	// Every is the interval at which the uploader scans the folder for changes; 0 for never. Changed scans
	// it at once.
	Every time.Duration

	at     Address
	store  Store
	writer string
	notify func(string)
	// release unlocks a working folder, after removing it on request; nil for a folder of the user's.
	release func(remove bool) error

	wake    chan struct{}   // signals changes of the folder; holds one signal
	stop    chan struct{}   // closed by Close
	done    chan struct{}   // closed when the loop has ended
	uploads context.Context // context of all uploads after the first
	cancel  context.CancelCauseFunc

	mu        sync.Mutex // held during an upload
	published bool       // whether this uploader wrote last
	last      manifest   // manifest in the store

	files  sync.Mutex      // guards stored and sent while files are uploaded in parallel
	stored map[string]bool // keys of the objects in the store
	sent   map[string]sent // uploaded files, by name
}

// sent is an uploaded file, as of its upload.
type sent struct {
	info fs.FileInfo
	file
}

// errChanged means that a file went away while the folder was copied.
var errChanged = errors.New("the folder changed while it was copied")

// restarts bounds how often an upload starts again because files went away.
const restarts = 10

// newUploader returns an uploader of a folder. before is the manifest in the store; nil if there is none.
func newUploader(at Address, s Store, dir, writer string, before *manifest, notify func(string)) *Uploader {
	u := &Uploader{Dir: dir, at: at, store: s, writer: writer, notify: notify, wake: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}), stored: map[string]bool{}, sent: map[string]sent{}}
	if before != nil {
		u.last, u.stored = *before, before.keys()
	}
	return u
}

// Start uploads the folder, and its changes from then on. It deletes the objects of interrupted uploads,
// which no manifest lists.
func (u *Uploader) Start(ctx context.Context) error {
	if err := u.sync(ctx); err != nil {
		return err
	}
	keys, err := u.store.List(ctx, objectsPrefix)
	for _, key := range keys {
		if err == nil && !u.stored[key] {
			err = u.store.Delete(ctx, key)
		}
	}
	if err != nil {
		return err
	}
	u.uploads, u.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	go u.loop()
	return nil
}

// Changed starts another upload once the current one has ended.
func (u *Uploader) Changed() {
	select {
	case u.wake <- struct{}{}:
	default: // an upload is due already
	}
}

// loop uploads changes until Close.
func (u *Uploader) loop() {
	defer close(u.done)
	var tick <-chan time.Time
	if u.Every > 0 {
		ticker := time.NewTicker(u.Every)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-u.wake:
		case <-tick:
		case <-u.stop:
			return
		}
		if err := u.sync(u.uploads); err != nil && u.uploads.Err() == nil && u.notify != nil {
			u.notify(fmt.Sprintf("%v; files that are not uploaded stay in %s until the next attempt", err, u.Dir))
		}
	}
}

// Close uploads the last changes, and then removes a working folder. When ctx has been done for grace, it
// gives up; the error then counts the missing files and names the folder that keeps them.
func (u *Uploader) Close(ctx context.Context, grace time.Duration) error {
	if u.cancel == nil { // without Start
		return u.free(false)
	}
	close(u.stop)
	defer u.cancel(nil)
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, func() { u.cancel(context.Cause(ctx)) }) })()
	<-u.done
	if err := u.sync(u.uploads); err != nil {
		e := &UnsentError{To: u.at, Dir: u.Dir, Err: err}
		e.Files, e.Bytes = u.missing()
		return errors.Join(e, u.free(false))
	}
	return u.free(true)
}

// UnsentError reports files that Close could not upload.
type UnsentError struct {
	// Files and Bytes count the missing files.
	Files int
	Bytes int64
	// To is the address that lacks them, and Dir the folder that keeps them.
	To  Address
	Dir string
	// Err is the reason.
	Err error
}

func (e *UnsentError) Error() string {
	return fmt.Sprintf("the upload to %v is incomplete (files missing: %d, of %d bytes): %v\nThey are kept in %s", e.To,
		e.Files, e.Bytes, e.Err, e.Dir)
}

// free unlocks a working folder, after removing it on request.
func (u *Uploader) free(remove bool) error {
	if u.release == nil {
		return nil
	}
	return u.release(remove)
}

// Abandon leaves the store as it is, and removes a working folder.
func (u *Uploader) Abandon() error {
	if u.cancel != nil {
		u.cancel(context.Canceled)
		close(u.stop)
		<-u.done
	}
	return u.free(true)
}

// missing counts the files that the manifest in the store lacks.
func (u *Uploader) missing() (files int, bytes int64) {
	all, err := u.list()
	if err != nil {
		return 0, 0
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, f := range all {
		now, known := u.sent[f.name]
		if !known || !now.same(f.info) || !slices.ContainsFunc(u.last.Files, func(l file) bool {
			return sameFile(l, now.file)
		}) {
			files, bytes = files+1, bytes+f.info.Size()
		}
	}
	return files, bytes
}

// sync uploads the changes of the folder.
func (u *Uploader) sync(ctx context.Context) (err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for range restarts {
		if err = u.upload(ctx); !errors.Is(err, errChanged) {
			break
		}
	}
	return err
}

// entry is a file of the folder.
type entry struct {
	name string // with slashes
	info fs.FileInfo
}

// list returns the files to upload. It leaves out locks and unfinished files, except the events of a run
// under way, with which the run can be continued.
func (u *Uploader) list() (all []entry, err error) {
	err = filepath.WalkDir(u.Dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil && name != u.Dir && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		partial := strings.HasSuffix(e.Name(), ".partial") && e.Name() != "events.jsonl.partial" ||
			strings.HasPrefix(e.Name(), ".partial-")
		if e.IsDir() && partial && name != u.Dir {
			return fs.SkipDir
		}
		if !e.Type().IsRegular() || partial || strings.HasPrefix(e.Name(), lockfile.Name) {
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err = filepath.Rel(u.Dir, name)
		all = append(all, entry{filepath.ToSlash(name), info})
		return err
	})
	return all, err
}

// upload uploads the folder: its objects, and then the manifest; u.mu is held.
//
// A record's writer writes dependent files last: run.json after the models, a checkpoint after its events.
// So upload lists all files before it reads any. If a file has gone by then, upload starts again. If a
// file has grown, it is too new for its checkpoint: a run that resumes there cuts later events off.
func (u *Uploader) upload(ctx context.Context) error {
	all, err := u.list()
	if err != nil {
		return err
	}
	next := manifest{Format: format, Writer: u.writer, Files: make([]file, len(all))}
	g, uploadContext := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, f := range all {
		g.Go(func() error {
			u.files.Lock()
			now, known := u.sent[f.name]
			u.files.Unlock()
			if !known || !now.same(f.info) {
				var err error
				if now, err = u.send(uploadContext, f.name); err != nil {
					return err
				}
			}
			next.Files[i] = now.file
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if u.published && slices.EqualFunc(u.last.Files, next.Files, sameFile) {
		return nil
	}
	return u.publish(ctx, next)
}

// same reports whether a file is unchanged since its upload: neither replaced nor grown.
func (s *sent) same(info fs.FileInfo) bool {
	return os.SameFile(s.info, info) && s.info.Size() == info.Size() && s.info.ModTime().Equal(info.ModTime())
}

func sameFile(a, b file) bool { return a.Name == b.Name && slices.Equal(a.Objects, b.Objects) }

// send uploads the objects of a file that the store does not have.
func (u *Uploader) send(ctx context.Context, name string) (sent, error) {
	in, err := os.Open(filepath.Join(u.Dir, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return sent{}, errChanged
	}
	if err != nil {
		return sent{}, err
	}
	defer in.Close() //nolint:errcheck // it was only read
	info, err := in.Stat()
	if err != nil {
		return sent{}, err
	}
	s := sent{info, file{Name: name}}
	for left := info.Size(); left > 0; {
		part := make([]byte, min(left, partSize))
		if _, err := io.ReadFull(in, part); err != nil {
			return sent{}, errors.Join(errChanged, err) // the file has shrunk
		}
		left -= int64(len(part))
		o := objectOf(name, part)
		if err := u.sendObject(ctx, o.Key, part); err != nil {
			return sent{}, err
		}
		s.Objects = append(s.Objects, o)
	}
	u.files.Lock()
	defer u.files.Unlock()
	u.sent[name] = s
	return s, nil
}

// sendObject uploads an object unless the store has it.
func (u *Uploader) sendObject(ctx context.Context, key string, content []byte) error {
	u.files.Lock()
	stored := u.stored[key]
	u.files.Unlock()
	if stored {
		return nil
	}
	if err := u.store.Put(ctx, key, content); err != nil {
		return err
	}
	u.files.Lock()
	defer u.files.Unlock()
	u.stored[key] = true
	return nil
}

// publish replaces the manifest, unless another program has replaced it, and then deletes the objects that
// only the previous manifest listed.
func (u *Uploader) publish(ctx context.Context, next manifest) error {
	if u.published {
		now, err := readManifest(ctx, u.store, u.at)
		if err != nil {
			return err
		}
		if now.Writer != u.writer {
			return fmt.Errorf("%v: %w", u.at, ErrTaken)
		}
	}
	if err := u.store.Put(ctx, manifestName, next.encode()); err != nil {
		return err
	}
	u.published, u.last = true, next
	needed := next.keys()
	for key := range u.stored {
		if needed[key] {
			continue
		}
		if err := u.store.Delete(ctx, key); err != nil {
			return err
		}
		delete(u.stored, key)
	}
	return nil
}

// Writable writes an object to the store and deletes it. Its error shows that the store would refuse a
// record, before there is one.
func (u *Uploader) Writable(ctx context.Context) error {
	const probe = objectsPrefix + "probe"
	if err := u.store.Put(ctx, probe, []byte("probe")); err != nil {
		return err
	}
	return u.store.Delete(ctx, probe)
}
