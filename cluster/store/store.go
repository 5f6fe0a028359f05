// Package store keeps records in an object store.
//
// A record is a manifest, under a path of the store, and the objects that the manifest lists. The key of an
// object contains its hash, so objects never change. An upload writes the manifest last: until then,
// readers see the record of the previous manifest.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Store holds objects by key. A key is a path with slashes.
type Store interface {
	// Put writes an object as a whole. It replaces the object of that key.
	Put(ctx context.Context, key string, content []byte) error
	// Get reads an object of at most limit bytes. ErrNotFound stands for a missing one.
	Get(ctx context.Context, key string, limit int64) ([]byte, error)
	// List returns the keys that begin with a prefix.
	List(ctx context.Context, prefix string) ([]string, error)
	// Delete removes an object; a missing one is no error.
	Delete(ctx context.Context, key string) error
}

// Errors that callers distinguish.
var (
	// ErrNotFound reports a missing object.
	ErrNotFound = errors.New("no such object")
	// ErrNoRecord reports a path of a store without a manifest.
	ErrNoRecord = errors.New("no record is stored here")
	// ErrExists reports a path of a store that must be empty and is not.
	ErrExists = errors.New("this path of the store is not empty")
	// ErrHoldsRecord reports a path of a store that must be empty and holds a record. It wraps ErrExists.
	ErrHoldsRecord = fmt.Errorf("%w: it holds a record", ErrExists)
	// ErrDamaged reports an object or a manifest with another checksum.
	ErrDamaged = errors.New("damaged in the store")
	// ErrTaken reports that another program now writes to the same path.
	ErrTaken = errors.New("another program writes here now")
)

// accepted lists the forms of an address, for errors.
const accepted = "s3://BUCKET/PATH, file:///PATH or a path is accepted"

// Address is a path in a store.
type Address struct {
	// Bucket is an S3 bucket; empty for a folder of this machine.
	Bucket string
	// Path is the path in the bucket, without a slash at either end, or the folder.
	Path string
}

// IsStored reports whether a text names a record in a store: an address with a scheme, or a folder with the
// manifest of a record.
func IsStored(text string) bool {
	return strings.Contains(text, "://") || IsRemote(text) || hasManifest(text)
}

// hasManifest reports whether a folder on this machine has the manifest of a record. The manifest.json of
// another program has another beginning.
func hasManifest(dir string) bool {
	file, err := os.Open(filepath.Join(dir, manifestName))
	if err != nil {
		return false
	}
	defer file.Close() //nolint:errcheck // it was only read
	head := make([]byte, len(manifestHead))
	_, err = io.ReadFull(file, head)
	return err == nil && string(head) == manifestHead
}

// IsRemote reports whether a text begins as the address of a store on another machine does. Parse
// refuses an address without its slashes, such as s3:/bucket.
func IsRemote(text string) bool { return strings.HasPrefix(strings.ToLower(text), "s3:") }

// Parse reads an address. An address never holds credentials.
func Parse(text string) (Address, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		if text == "" {
			return Address{}, fmt.Errorf("the address of a store is empty; %s", accepted)
		}
		if IsRemote(text) {
			return Address{}, fmt.Errorf("%s is neither an address nor a folder; %s", text, accepted)
		}
		return Address{Path: text}, nil
	}
	host, p, _ := strings.Cut(rest, "/")
	if _, bare, ok := cutLast(host, "@"); ok {
		return Address{}, fmt.Errorf("%s://...@%s/%s holds a user or password, which would stay in records; "+
			"give credentials by %s", scheme, bare, strings.SplitN(p, "?", 2)[0], credentialSources)
	}
	if bare, _, ok := strings.Cut(rest, "?"); ok {
		return Address{}, fmt.Errorf("%s://%s?...: the address of a store has no query; %s", scheme, bare, accepted)
	}
	switch strings.ToLower(scheme) {
	case "s3":
		p = strings.TrimSuffix(p, "/")
		switch {
		case host == "":
			return Address{}, fmt.Errorf("%s names no bucket; %s", text, accepted)
		case p != "" && (path.Clean(p) != p || p == "." || p == ".." || strings.HasPrefix(p, "/") ||
			strings.HasPrefix(p, "../")):
			return Address{}, fmt.Errorf("%s has empty, \".\" or \"..\" parts in its path; %s", text, accepted)
		}
		return Address{Bucket: host, Path: p}, nil
	case "file":
		if host != "" && host != "localhost" || p == "" {
			return Address{}, fmt.Errorf("%s: a file's address has three slashes; %s", text, accepted)
		}
		if runtime.GOOS != "windows" || !strings.Contains(p, ":") {
			p = "/" + p
		}
		return Address{Path: filepath.FromSlash(p)}, nil
	}
	return Address{}, fmt.Errorf("%s: no store has the scheme %q; %s", text, scheme, accepted)
}

// cutLast is [strings.Cut] at the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// String is the address as it is written.
func (a Address) String() string {
	if a.Bucket == "" {
		return a.Path
	}
	return "s3://" + path.Join(a.Bucket, a.Path)
}

// Join returns the address of a path below.
func (a Address) Join(name string) Address {
	if a.Bucket == "" {
		return Address{Path: filepath.Join(a.Path, filepath.FromSlash(name))}
	}
	return Address{Bucket: a.Bucket, Path: path.Join(a.Path, name)}
}

// parent is the address of the folder above, and the last name; ok is false at the root.
func (a Address) parent() (up Address, name string, ok bool) {
	p := filepath.ToSlash(a.Path)
	if a.Bucket == "" {
		p = strings.TrimRight(p, "/")
	}
	dir, name := path.Split(p)
	if name == "" || name == "." {
		return Address{}, "", false
	}
	if a.Bucket != "" {
		dir = strings.TrimRight(dir, "/")
	}
	up = Address{Bucket: a.Bucket, Path: dir}
	if a.Bucket == "" {
		up.Path = filepath.Clean(filepath.FromSlash(dir))
	}
	return up, name, true
}

// Open returns the store below an address. It retries failed requests, and calls notify with a sentence
// before each pause.
func (a Address) Open(notify func(string)) (Store, error) {
	if a.Bucket == "" {
		return folder{a.Path}, nil
	}
	s, err := newS3(a)
	if err != nil {
		return nil, err
	}
	return &retrying{Store: s, notify: notify}, nil
}

// sorted returns keys in order.
func sorted(keys []string) []string {
	slices.Sort(keys)
	return keys
}
