package checkpoint

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
)

// Key signs checkpoints. A program reads only checkpoints signed with the key of its user or cluster: a
// forged state would silently falsify the run.
type Key []byte

// keySize is how long a key is, in bytes.
const keySize = 32

// For derives the key of one run, so that a state of another run is refused.
func (k Key) For(run string) Key {
	return k.sign([]byte("gradwire checkpoints of a run\x00"), []byte(run))
}

// sign returns the HMAC (RFC 2104) of the concatenated parts.
func (k Key) sign(parts ...[]byte) []byte {
	h := hmac.New(sha256.New, k)
	for _, part := range parts {
		_, _ = h.Write(part)
	}
	return h.Sum(nil)
}

// UserKey returns the key of the user who runs this program, and makes it the first time. Only the
// user can read its file.
func UserKey() (Key, error) {
	dir, err := stateFolder()
	if err != nil {
		return nil, err
	}
	return ReadKey(filepath.Join(dir, "gradwire", "checkpoint.key"))
}

// stateFolder returns the user's folder for persistent state (XDG Base Directory Specification).
func stateFolder() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return dir, nil
	}
	home := ""
	if u, err := user.Current(); err == nil {
		home = u.HomeDir // also where HOME is not set, as for some services
	}
	if home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(home, ".local", "state"), nil
}

// ReadKey reads the key in a file, or makes one. Of several programs that make one at the same
// time, the first wins.
func ReadKey(path string) (Key, error) {
	k, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeKey(path); err != nil {
			return nil, err
		}
		k, err = os.ReadFile(path)
	}
	if err == nil && len(k) != keySize {
		err = fmt.Errorf(
			"%s: it has %d bytes, and a key has %d; remove it, and a new one is made",
			path,
			len(k),
			keySize,
		)
	}
	return k, err
}

// RandomKey is a key that no other process has.
func RandomKey() Key {
	k := make(Key, keySize)
	_, _ = rand.Read(k) // which never fails
	return k
}

// makeKey puts a new key into a file, if the file is not there yet.
func makeKey(path string) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)) // which others cannot read
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.Write(RandomKey())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
