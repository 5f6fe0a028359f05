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

	"github.com/gradwire/gradwire/cluster/record/lockfile"
)

// Mirror copies a folder to a store whenever it changes. Methods may be called from several
// goroutines.
type Mirror struct {
	// Dir is the folder.
	Dir string
	// Every is how often the folder is looked through for changes, beside those that Changed tells of; 0
	// stands for never.
	Every time.Duration

	at     Address
	store  Store
	writer string
	notify func(string)
	// release lets others have a working folder, which is removed once it is uploaded; nil for a folder
	// of the user's.
	release func(remove bool) error

	wake    chan struct{}   // has room for one: the folder has changed
	stop    chan struct{}   // closed by Close
	done    chan struct{}   // closed when the loop has ended
	uploads context.Context // that of all uploads after the first one
	cancel  context.CancelCauseFunc

	mu        sync.Mutex      // held during an upload
	published bool            // last is a manifest of this mirror
	last      manifest        // the one in the store
	stored    map[string]bool // keys in the store
	sent      map[string]sent // files as they were when their objects were uploaded
}

// sent is a file whose objects are in the store.
type sent struct {
	info fs.FileInfo
	file
}

// errChanged means that a file went away while the folder was copied.
var errChanged = errors.New("the folder changed while it was copied")

// restarts is how often a copy begins again because files went away.
const restarts = 10

// newMirror returns a mirror of a folder, whose manifest in the store was before, if any.
func newMirror(at Address, s Store, dir, writer string, before *manifest, notify func(string)) *Mirror {
	m := &Mirror{Dir: dir, at: at, store: s, writer: writer, notify: notify, wake: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}), stored: map[string]bool{}, sent: map[string]sent{}}
	if before != nil {
		m.last, m.stored = *before, before.keys()
	}
	return m
}

// Start uploads the folder, and from then on its changes. Objects that no manifest lists are deleted:
// an interrupted upload left them.
func (m *Mirror) Start(ctx context.Context) error {
	if err := m.sync(ctx); err != nil {
		return err
	}
	keys, err := m.store.List(ctx, objectsPrefix)
	for _, key := range keys {
		if err == nil && !m.stored[key] {
			err = m.store.Delete(ctx, key)
		}
	}
	if err != nil {
		return err
	}
	m.uploads, m.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	go m.loop()
	return nil
}

// Changed has changes uploaded, after those that are being uploaded.
func (m *Mirror) Changed() {
	select {
	case m.wake <- struct{}{}:
	default: // it is known already
	}
}

// loop uploads changes until Close.
func (m *Mirror) loop() {
	defer close(m.done)
	var tick <-chan time.Time
	if m.Every > 0 {
		ticker := time.NewTicker(m.Every)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-m.wake:
		case <-tick:
		case <-m.stop:
			return
		}
		if err := m.sync(m.uploads); err != nil && m.uploads.Err() == nil && m.notify != nil {
			m.notify(fmt.Sprintf("%v; files that are not uploaded stay in %s until the next attempt", err, m.Dir))
		}
	}
}

// Close uploads the rest, and then removes a working folder. It gives up when grace has passed since
// ctx ended; the error says which files are not uploaded.
func (m *Mirror) Close(ctx context.Context, grace time.Duration) error {
	if m.cancel == nil { // it never started
		return m.free(false)
	}
	close(m.stop)
	defer m.cancel(nil)
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, func() { m.cancel(context.Cause(ctx)) }) })()
	<-m.done
	if err := m.sync(m.uploads); err != nil {
		files, bytes := m.missing()
		err = fmt.Errorf("%d files with %d bytes are not uploaded to %v: %v\nThey are kept in %s; the same command "+
			"with --continue uploads them", files, bytes, m.at, err, m.Dir)
		return errors.Join(err, m.free(false))
	}
	return m.free(true)
}

// free lets others have a working folder.
func (m *Mirror) free(remove bool) error {
	if m.release == nil {
		return nil
	}
	return m.release(remove)
}

// Abandon leaves the store as it is, and removes a working folder.
func (m *Mirror) Abandon() error {
	if m.cancel != nil {
		m.cancel(context.Canceled)
		close(m.stop)
		<-m.done
	}
	return m.free(true)
}

// missing counts what the manifest in the store lacks.
func (m *Mirror) missing() (files int, bytes int64) {
	all, err := m.list()
	if err != nil {
		return 0, 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range all {
		now, known := m.sent[f.name]
		if !known || !now.same(f.info) || !slices.ContainsFunc(m.last.Files, func(l file) bool {
			return sameFile(l, now.file)
		}) {
			files, bytes = files+1, bytes+f.info.Size()
		}
	}
	return files, bytes
}

// sync uploads what has changed.
func (m *Mirror) sync(ctx context.Context) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range restarts {
		if err = m.upload(ctx); !errors.Is(err, errChanged) {
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

// list returns the files to be copied: no locks, and of files that are being written only the events,
// from which an interrupted run goes on.
func (m *Mirror) list() (all []entry, err error) {
	err = filepath.WalkDir(m.Dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil && name != m.Dir && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		partial := strings.HasSuffix(e.Name(), ".partial") && e.Name() != "events.jsonl.partial" ||
			strings.HasPrefix(e.Name(), ".partial-")
		if e.IsDir() && partial && name != m.Dir {
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
		name, err = filepath.Rel(m.Dir, name)
		all = append(all, entry{filepath.ToSlash(name), info})
		return err
	})
	return all, err
}

// upload copies the folder as it is now: its objects, and then the manifest. m.mu is held.
//
// The files that complete others are written last: run.json after the models, a checkpoint after the
// events before it. So all files are listed before any is read. One that has gone by then starts the
// copy again. One that has grown since is at worst too new, and what goes on from a checkpoint cuts
// later events off.
func (m *Mirror) upload(ctx context.Context) error {
	all, err := m.list()
	if err != nil {
		return err
	}
	next := manifest{Format: format, Writer: m.writer, Files: make([]file, len(all))}
	var uploading sync.Mutex // guards m.sent and m.stored
	err = each(ctx, len(all), func(ctx context.Context, i int) error {
		uploading.Lock()
		now, known := m.sent[all[i].name]
		uploading.Unlock()
		if !known || !now.same(all[i].info) {
			var err error
			if now, err = m.send(ctx, all[i].name, &uploading); err != nil {
				return err
			}
		}
		next.Files[i] = now.file
		return nil
	})
	if err != nil {
		return err
	}
	if m.published && slices.EqualFunc(m.last.Files, next.Files, sameFile) {
		return nil
	}
	return m.publish(ctx, next)
}

// same reports whether a file has not changed since it was uploaded. A file that was replaced is
// another one, and one that has grown has another size.
func (s *sent) same(info fs.FileInfo) bool {
	return os.SameFile(s.info, info) && s.info.Size() == info.Size() && s.info.ModTime().Equal(info.ModTime())
}

func sameFile(a, b file) bool { return a.Name == b.Name && slices.Equal(a.Objects, b.Objects) }

// send uploads the objects of a file that the store does not have.
func (m *Mirror) send(ctx context.Context, name string, uploading *sync.Mutex) (sent, error) {
	in, err := os.Open(filepath.Join(m.Dir, filepath.FromSlash(name)))
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
			return sent{}, errors.Join(errChanged, err) // it was cut off meanwhile
		}
		left -= int64(len(part))
		o := objectOf(name, part)
		uploading.Lock()
		stored := m.stored[o.Key]
		uploading.Unlock()
		if !stored {
			if err := m.store.Put(ctx, o.Key, part); err != nil {
				return sent{}, err
			}
		}
		uploading.Lock()
		m.stored[o.Key] = true
		uploading.Unlock()
		s.Objects = append(s.Objects, o)
	}
	uploading.Lock()
	defer uploading.Unlock()
	m.sent[name] = s
	return s, nil
}

// publish replaces the manifest, unless another program has, and then deletes the objects that only
// the previous one listed.
func (m *Mirror) publish(ctx context.Context, next manifest) error {
	if m.published {
		now, err := readManifest(ctx, m.store, m.at)
		if err != nil {
			return err
		}
		if now.Writer != m.writer {
			return fmt.Errorf("%v: %w", m.at, ErrTaken)
		}
	}
	if err := m.store.Put(ctx, manifestName, next.encode()); err != nil {
		return err
	}
	m.published, m.last = true, next
	needed := next.keys()
	for key := range m.stored {
		if needed[key] {
			continue
		}
		if err := m.store.Delete(ctx, key); err != nil {
			return err
		}
		delete(m.stored, key)
	}
	return nil
}
