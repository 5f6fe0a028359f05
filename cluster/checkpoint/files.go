package checkpoint

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/record/safetensors"
	"github.com/gradwire/gradwire/protos"
)

const (
	stateName   = "state.pb"
	tensorsName = "tensors.safetensors"

	// family is the prefix of every version's format, and format is the format of this version. Its
	// number covers the folder, the manifest and the set of files. version covers the fields of
	// state.pb.
	family  = "gradwire checkpoint "
	format  = family + "5"
	images  = family + "4"   // a folder that may hold a memory image
	oldest  = family + "3\n" // prefix of a checkpoint in a single file
	version = 1
	// manifestLimit bounds the bytes read of a manifest.
	manifestLimit = 1 << 20
)

// manifest lists the files of a checkpoint.
type manifest struct {
	Format string `json:"format"`
	Files  []file `json:"files"`
	// Signature signs the manifest without this field, and so every file that the manifest lists.
	Signature string `json:"signature,omitempty"`
}

type file struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// writeFiles writes a state into a new folder.
func (f *Folder) writeFiles(dir string, s *State) error {
	if err := os.Mkdir(dir, 0o777); err != nil { //nolint:gosec // the mask of the process decides
		return err
	}
	m := &manifest{Format: format}
	write := func(name string, content func(to io.Writer) error) error {
		entry, err := writeFile(dir, name, content)
		m.Files = append(m.Files, entry)
		return err
	}
	text, err := encode(s)
	if err == nil {
		err = write(stateName, bytesTo(text))
	}
	if err == nil {
		err = write(tensorsName, func(to io.Writer) error { return writeTensors(to, s.Declared.Vectors) })
	}
	if err != nil {
		return err
	}
	m.Signature = f.signature(m)
	if _, err := writeFile(dir, Manifest, bytesTo(seal(m.encode()))); err != nil {
		return err
	}
	return syncFolder(dir)
}

func bytesTo(b []byte) func(io.Writer) error {
	return func(to io.Writer) error {
		_, err := to.Write(b)
		return err
	}
}

// writeFile writes a file, and returns its entry in the manifest.
func writeFile(dir, name string, content func(to io.Writer) error) (file, error) {
	out, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return file{}, err
	}
	sum, size := sha256.New(), &Counted{WriteCloser: out}
	to := bufio.NewWriterSize(io.MultiWriter(size, sum), 1<<16)
	if err = content(to); err == nil {
		err = to.Flush()
	}
	if err == nil {
		err = out.Sync()
	}
	return file{name, size.Bytes, hex.EncodeToString(sum.Sum(nil))}, errors.Join(err, out.Close())
}

// encode returns the text of a manifest without the closing line, which holds its SHA-256.
func (m *manifest) encode() []byte {
	text, _ := json.MarshalIndent(m, "", " ") // never fails for strings and numbers
	return bytes.TrimSuffix(text, []byte("\n}"))
}

// seal completes the text of a manifest with its SHA-256.
func seal(text []byte) []byte { return fmt.Appendf(text, "%s%x\"\n}\n", sealed, sha256.Sum256(text)) }

const sealed = ",\n \"sha256\": \""

// signature returns the signature of a manifest.
func (f *Folder) signature(m *manifest) string {
	unsigned := *m
	unsigned.Signature = ""
	return hex.EncodeToString(f.Key.sign(unsigned.encode()))
}

// readManifest reads the manifest of a checkpoint.
func readManifest(name string) (*manifest, error) {
	if is, err := os.Stat(name); err != nil {
		return nil, err
	} else if !is.IsDir() {
		return nil, readOld(name)
	}
	in, err := os.Open(filepath.Join(name, Manifest))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer in.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(in, manifestLimit))
	if err != nil {
		return nil, err
	}
	end := max(bytes.LastIndex(text, []byte(sealed)), 0)
	if !bytes.Equal(seal(text[:end:end]), text) {
		return nil, fmt.Errorf("%w: %s: its SHA-256 differs", ErrDamaged, Manifest)
	}
	m := &manifest{}
	err = json.Unmarshal(text, m)
	switch {
	case m.Format == images:
		return nil, fmt.Errorf("%w; its format is %q, and this version reads %q", ErrOld, m.Format, format)
	case strings.HasPrefix(m.Format, family) && m.Format != format:
		return nil, fmt.Errorf("%w; its format is %.40q, and this version reads %q", ErrNew, m.Format, format)
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, Manifest, err)
	}
	return m, nil
}

// readOld returns the error about a checkpoint in a single file.
func readOld(name string) error {
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	head := make([]byte, len(oldest))
	if _, err := io.ReadFull(in, head); err == nil && string(head) == oldest {
		return fmt.Errorf("%w; its format is %q, and this version reads %q", ErrOld, strings.TrimSpace(oldest), format)
	}
	return fmt.Errorf("%w: it is no folder", ErrDamaged)
}

// complete reports whether a checkpoint has all its files, by their names and sizes.
func complete(name string) bool {
	m, err := readManifest(name)
	return err == nil && !slices.ContainsFunc(m.Files, func(f file) bool {
		is, err := os.Stat(filepath.Join(name, f.Name))
		return err != nil || is.Size() != f.Bytes
	})
}

// read reads a checkpoint.
func (f *Folder) read(name string) (State, error) {
	m, err := readManifest(name)
	if err != nil {
		return State{}, err
	}
	open := map[string]*os.File{}
	defer func() {
		for _, in := range open {
			in.Close() //nolint:errcheck // it was only read
		}
	}()
	for _, entry := range m.Files {
		if open[entry.Name], err = entry.open(name); err != nil {
			return State{}, err
		}
	}
	if open[stateName] == nil || open[tensorsName] == nil {
		return State{}, fmt.Errorf("%w: %s lists other files than %s and %s", ErrDamaged, Manifest, stateName,
			tensorsName)
	}
	if !hmac.Equal([]byte(m.Signature), []byte(f.signature(m))) { // checked after the checksums: damage is no forgery
		return State{}, ErrForeign
	}
	text, err := io.ReadAll(open[stateName])
	if err != nil {
		return State{}, err
	}
	return decode(text, open[tensorsName])
}

// open opens a file of a checkpoint, and returns an error if the file has changed.
func (f *file) open(dir string) (*os.File, error) {
	if f.Name != filepath.Base(f.Name) || !filepath.IsLocal(f.Name) {
		return nil, fmt.Errorf("%w: %s lists a file %.80q", ErrDamaged, Manifest, f.Name)
	}
	in, err := os.Open(filepath.Join(dir, f.Name))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, in)
	if err == nil {
		_, err = in.Seek(0, io.SeekStart)
	}
	switch {
	case err != nil:
	case n != f.Bytes:
		err = fmt.Errorf("%w: %s: it has %d bytes of %d", ErrDamaged, f.Name, n, f.Bytes)
	case hex.EncodeToString(sum.Sum(nil)) != f.SHA256:
		err = fmt.Errorf("%w: %s: its SHA-256 differs", ErrDamaged, f.Name)
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// encode returns the content of state.pb.
func encode(s *State) ([]byte, error) {
	m := &protos.Checkpoint{Version: version, Plan: s.Plan, Seed: s.Seed, Data: s.Data, At: int64(s.At),
		Events: s.Events, Virtual: s.Virtual, State: s.Declared.Root}
	for _, v := range s.Declared.Vectors {
		m.Vectors = append(m.Vectors, v.Name)
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// writeTensors writes vectors in the safetensors format.
func writeTensors(to io.Writer, vectors []state.Vector) error {
	tensors, parts := make([]safetensors.Tensor, len(vectors)), make([][]float32, len(vectors))
	offset := 0
	for i, v := range vectors {
		tensors[i], parts[i] = safetensors.Tensor{Name: v.Name, Shape: []int{len(v.Data)}, Offset: offset}, v.Data
		offset += len(v.Data)
	}
	if len(tensors) == 0 { // safetensors.Write would name the missing tensor params
		tensors = []safetensors.Tensor{{Name: "none", Shape: []int{0}}}
	}
	return safetensors.Write(to, tensors, nil, parts...)
}

// decode reads the state from state.pb and tensors.safetensors.
func decode(text []byte, tensors io.Reader) (State, error) {
	m := &protos.Checkpoint{}
	if err := proto.Unmarshal(text, m); err != nil {
		return State{}, fmt.Errorf("%w: %s: %w", ErrDamaged, stateName, err)
	}
	if m.GetVersion() != version {
		return State{}, fmt.Errorf("%w; its %s has version %d, and this version reads %d", ErrNew, stateName,
			m.GetVersion(), version)
	}
	s := State{Origin: live.Origin{Plan: m.GetPlan(), Seed: m.GetSeed(), Data: m.GetData()},
		At: time.Duration(m.GetAt()), Events: m.GetEvents(), Virtual: m.GetVirtual()}
	values, all, _, err := safetensors.Read(tensors)
	if err != nil {
		return State{}, fmt.Errorf("%w: %s: %w", ErrDamaged, tensorsName, err)
	}
	named := make(map[string][]float32, len(all))
	for i, t := range all {
		end := len(values)
		if i+1 < len(all) {
			end = all[i+1].Offset
		}
		named[t.Name] = values[t.Offset:end:end]
	}
	s.Declared = &state.Saved{Root: m.GetState()}
	for _, name := range m.GetVectors() {
		data, there := named[name]
		if !there {
			return State{}, fmt.Errorf("%w: %s has no tensor %.80q", ErrDamaged, tensorsName, name)
		}
		s.Declared.Vectors = append(s.Declared.Vectors, state.Vector{Name: name, Data: data})
	}
	return s, nil
}
