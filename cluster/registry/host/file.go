package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"runtime/debug"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/registry"
	"github.com/gradwire/gradwire/protos"
)

// File is a registry's log in a file of go.etcd.io/bbolt, whose transactions are atomic. Load
// detects damage: every record carries a checksum, and the recorded extent of the log reveals
// missing entries.
type File struct {
	path string
	db   *bbolt.DB
	bad  error // damage that prevents bbolt from opening the file; nil without
}

var _ registry.Storage = (*File)(nil)

var (
	metaBucket = []byte("meta")
	logBucket  = []byte("log")

	identityKey = []byte("identity")
	hardKey     = []byte("hard")
	snapshotKey = []byte("snapshot")
	extentKey   = []byte("extent") // index of the last entry, or of the snapshot without entries
)

// lockPatience is how long OpenFile waits for another process to close the file.
const lockPatience = 2 * time.Second

// OpenFile opens a file, or creates it. It opens a damaged file without an error; Load returns the
// error.
func OpenFile(path string) (*File, error) {
	f := &File{path: path}
	err := f.open()
	switch {
	case err == nil:
	case isDamage(err):
		f.bad = err
	default:
		return nil, fmt.Errorf("the registry's log %s cannot be opened: %w", path, err)
	}
	return f, nil
}

// isDamage reports whether an error says that a file is damaged. After any other error the file may
// be intact, and its member must remain.
func isDamage(err error) bool {
	return errors.Is(err, registry.ErrDamaged) || errors.Is(err, berrors.ErrInvalid) ||
		errors.Is(err, berrors.ErrVersionMismatch) || errors.Is(err, berrors.ErrChecksum)
}

// open opens the file. At a damaged file bbolt may panic or read beyond its end. Then the file
// stays locked until the process ends, and Create starts a new one.
func (f *File) open() (err error) {
	defer guard(&err)()
	if err := checkMetaPages(f.path); err != nil {
		return err
	}
	f.db, err = bbolt.Open(f.path, 0o600, &bbolt.Options{Timeout: lockPatience})
	return err
}

// checkMetaPages returns an error unless both meta pages of a bbolt file are intact. With only one,
// bbolt may open the file in the state before the last transaction, which may have stored a vote.
func checkMetaPages(path string) error {
	data, err := os.ReadFile(path) // a small file, because snapshots bound the log
	if os.IsNotExist(err) || err == nil && len(data) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if len(data) < 2*os.Getpagesize() {
		return fmt.Errorf("%w: the file is shorter than its two meta pages", registry.ErrDamaged)
	}
	const header, length = 16, 56 // bytes of a page header and of the fields under the checksum
	for n := range 2 {
		at := n*os.Getpagesize() + header
		sum := fnv.New64a()
		sum.Write(data[at : at+length])
		if sum.Sum64() != binary.NativeEndian.Uint64(data[at+length:]) {
			return fmt.Errorf("%w: meta page %d does not match its checksum", registry.ErrDamaged, n)
		}
	}
	return nil
}

// guard turns panics and faults of mapped memory into an error. The caller defers the function that
// guard returns.
func guard(err *error) func() {
	faults := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(faults)
		if cause := recover(); cause != nil {
			*err = fmt.Errorf("%w: %v", registry.ErrDamaged, cause)
		}
	}
}

// Close closes the file.
func (f *File) Close() (err error) {
	defer guard(&err)()
	if f.db == nil {
		return nil
	}
	return f.db.Close()
}

// Load reads the log. The error wraps registry.ErrDamaged if any part is damaged.
func (f *File) Load() (saved *registry.Saved, err error) {
	if f.bad != nil {
		return nil, damaged(f.path, f.bad)
	}
	defer guard(&err)()
	err = f.db.View(func(tx *bbolt.Tx) error {
		meta, log := tx.Bucket(metaBucket), tx.Bucket(logBucket)
		if meta == nil && log == nil {
			return nil // a new file
		}
		if meta == nil || log == nil {
			return errors.New("a bucket of the log is missing")
		}
		saved = &registry.Saved{}
		return read(saved, meta, log)
	})
	if err != nil {
		return nil, damaged(f.path, err)
	}
	return saved, nil
}

// damaged returns an error about a damaged file.
func damaged(path string, err error) error {
	if errors.Is(err, registry.ErrDamaged) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return fmt.Errorf("%s: %w: %w", path, registry.ErrDamaged, err)
}

// read reads a log from its buckets.
func read(saved *registry.Saved, meta, log *bbolt.Bucket) error {
	saved.Identity = &protos.RegistryIdentity{}
	if found, err := get(meta, identityKey, saved.Identity); err != nil || !found {
		return errors.Join(err, errors.New("the identity cannot be read"))
	}
	hard, snapshot := &raftpb.HardState{}, &raftpb.Snapshot{}
	hasHard, err := get(meta, hardKey, hard)
	if err != nil {
		return err
	}
	hasSnapshot, err := get(meta, snapshotKey, snapshot)
	if err != nil {
		return err
	}
	if hasHard {
		saved.Hard = hard
	}
	last := uint64(0)
	if hasSnapshot {
		saved.Snapshot, last = snapshot, snapshot.GetMetadata().GetIndex()
	}
	err = log.ForEach(func(key, value []byte) error {
		e := &raftpb.Entry{}
		if err := decode(key, value, e); err != nil {
			return err
		}
		if last++; e.GetIndex() != last || binary.BigEndian.Uint64(key) != last {
			return fmt.Errorf("entry %d stands where entry %d belongs", e.GetIndex(), last)
		}
		saved.Entries = append(saved.Entries, e)
		return nil
	})
	if err != nil {
		return err
	}
	extent := &raftpb.Entry{}
	if _, err := get(meta, extentKey, extent); err != nil {
		return err
	}
	if extent.GetIndex() != last {
		return fmt.Errorf("the log ends at entry %d, but its extent says %d", last, extent.GetIndex())
	}
	if hard.GetCommit() > last {
		return fmt.Errorf("the log ends at entry %d, before its commit index %d", last, hard.GetCommit())
	}
	return nil
}

// Create starts a new log. It moves an unusable file to PATH.unusable first.
func (f *File) Create(id *protos.RegistryIdentity) error {
	if !f.isNew() {
		if err := f.setAside(); err != nil {
			return err
		}
	}
	return f.db.Update(func(tx *bbolt.Tx) error {
		meta, err := tx.CreateBucket(metaBucket)
		if err != nil {
			return err
		}
		if _, err := tx.CreateBucket(logBucket); err != nil {
			return err
		}
		return put(meta, identityKey, id)
	})
}

// Replace replaces the log in one transaction. First it copies the file to PATH.superseded-N,
// where N is the number of the replaced log's registry. The copy gets this name only when it is
// complete.
func (f *File) Replace(s *registry.Saved, number uint64) (err error) {
	defer guard(&err)()
	return f.db.Update(func(tx *bbolt.Tx) error {
		if tx.Bucket(metaBucket).Get(snapshotKey) != nil {
			if err := copyLog(tx, f.supersededPath(number)); err != nil {
				return err
			}
		}
		meta, log, err := emptyBuckets(tx)
		if err != nil {
			return err
		}
		last := s.Snapshot.GetMetadata().GetIndex()
		for _, e := range s.Entries {
			last = e.GetIndex()
			if err := put(log, binary.BigEndian.AppendUint64(nil, last), e); err != nil {
				return err
			}
		}
		if s.Hard != nil {
			if err := put(meta, hardKey, s.Hard); err != nil {
				return err
			}
		}
		if s.Snapshot != nil {
			if err := put(meta, snapshotKey, s.Snapshot); err != nil {
				return err
			}
		}
		return errors.Join(put(meta, identityKey, s.Identity), put(meta, extentKey, &raftpb.Entry{Index: &last}))
	})
}

// isNew reports whether OpenFile has created the file.
func (f *File) isNew() (is bool) {
	return f.bad == nil && f.db.View(func(tx *bbolt.Tx) error {
		is = tx.Bucket(metaBucket) == nil
		return nil
	}) == nil && is
}

// setAside moves the file to PATH.unusable and opens a new one.
func (f *File) setAside() error {
	if err := f.Close(); err != nil {
		return err
	}
	if info, err := os.Stat(f.path); err == nil && info.Size() > 0 {
		if err := os.Rename(f.path, f.path+".unusable"); err != nil {
			return err
		}
	}
	f.bad = nil
	return f.open()
}

// supersededPath returns the path of the copy that Replace makes of a registry's log.
func (f *File) supersededPath(number uint64) string {
	return fmt.Sprintf("%s.superseded-%x", f.path, number)
}

// copyLog copies the file, without the transaction's changes, to a path.
func copyLog(tx *bbolt.Tx, path string) error {
	partial := path + ".partial"
	if err := tx.CopyFile(partial, 0o600); err != nil {
		return errors.Join(fmt.Errorf("cannot copy the superseded log: %w", err), os.Remove(partial))
	}
	file, err := os.OpenFile(partial, os.O_RDWR, 0)
	if err == nil {
		err = errors.Join(file.Sync(), file.Close())
	}
	if err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot copy the superseded log: %w", err), os.Remove(partial))
	}
	return nil
}

// emptyBuckets replaces the buckets of a log with empty ones.
func emptyBuckets(tx *bbolt.Tx) (meta, log *bbolt.Bucket, err error) {
	for _, name := range [][]byte{metaBucket, logBucket} {
		if err := tx.DeleteBucket(name); err != nil {
			return nil, nil, err
		}
	}
	if meta, err = tx.CreateBucket(metaBucket); err == nil {
		log, err = tx.CreateBucket(logBucket)
	}
	return meta, log, err
}

// Save stores an update in one transaction.
func (f *File) Save(u *registry.Update) (err error) {
	defer guard(&err)()
	return f.db.Update(func(tx *bbolt.Tx) error {
		meta, log := tx.Bucket(metaBucket), tx.Bucket(logBucket)
		last := uint64(0)
		if key, _ := log.Cursor().Last(); key != nil {
			last = binary.BigEndian.Uint64(key)
		}
		if u.Hard != nil {
			if err := put(meta, hardKey, u.Hard); err != nil {
				return err
			}
		}
		if u.Snapshot != nil {
			upTo := u.Snapshot.GetMetadata().GetIndex()
			if err := errors.Join(put(meta, snapshotKey, u.Snapshot), deleteRange(log, 0, upTo)); err != nil {
				return err
			}
			if u.Reset {
				last = 0
				if err := deleteRange(log, 0, ^uint64(0)); err != nil {
					return err
				}
			}
			last = max(last, upTo)
		}
		if len(u.Entries) > 0 {
			last = u.Entries[len(u.Entries)-1].GetIndex()
			if err := deleteRange(log, u.Entries[0].GetIndex(), ^uint64(0)); err != nil {
				return err
			}
		}
		for _, e := range u.Entries {
			if err := put(log, binary.BigEndian.AppendUint64(nil, e.GetIndex()), e); err != nil {
				return err
			}
		}
		if len(u.Entries) == 0 && u.Snapshot == nil {
			return nil
		}
		return put(meta, extentKey, &raftpb.Entry{Index: &last})
	})
}

// deleteRange deletes the entries of a range.
func deleteRange(log *bbolt.Bucket, from, to uint64) error {
	var keys [][]byte
	cursor := log.Cursor()
	for key, _ := cursor.Seek(binary.BigEndian.AppendUint64(nil, from)); key != nil; key, _ = cursor.Next() {
		if binary.BigEndian.Uint64(key) > to {
			break
		}
		keys = append(keys, key)
	}
	for _, key := range keys {
		if err := log.Delete(key); err != nil {
			return err
		}
	}
	return nil
}

// put stores a record, preceded by its checksum.
func put(b *bbolt.Bucket, key []byte, m proto.Message) error {
	data, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	return b.Put(key, append(binary.BigEndian.AppendUint64(nil, checksum(key, data)), data...))
}

func get(b *bbolt.Bucket, key []byte, m proto.Message) (found bool, err error) {
	value := b.Get(key)
	if value == nil {
		return false, nil
	}
	return true, decode(key, value, m)
}

func decode(key, value []byte, m proto.Message) error {
	if len(value) < 8 || checksum(key, value[8:]) != binary.BigEndian.Uint64(value) {
		return fmt.Errorf("the record %q does not match its checksum", key)
	}
	return proto.Unmarshal(value[8:], m)
}

// checksum covers the key too, so that a record under another key counts as damage.
func checksum(key, data []byte) uint64 {
	d := xxhash.New()
	d.Write(key)  //nolint:errcheck // it cannot fail
	d.Write(data) //nolint:errcheck // it cannot fail
	return d.Sum64()
}
