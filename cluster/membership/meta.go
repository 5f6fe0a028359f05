package membership

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/gradwire/gradwire/cluster/naming"
	"github.com/gradwire/gradwire/cluster/protocol"
)

// Limits of what a node says of itself. Together they allow more than MaxMeta; what does
// not fit there is refused where it is said.
const (
	// MaxMeta is the greatest size of encoded metadata, in bytes: what memberlist carries.
	MaxMeta = 512

	maxRole    = 32
	maxBuild   = 64
	maxCatalog = 32
	maxAddress = 255 + len(":65535")
	maxCores   = 1 << 16
	maxLabels  = 32
	maxText    = 255
)

const (
	flagLeaving  = 1
	flagDraining = 2
)

// Meta is what a node says of itself. It travels in every message that says that the
// node is alive, so it is small: at most MaxMeta bytes encoded. A Meta that was received
// is shared and must not be modified.
type Meta struct {
	// Role is what the node is for, at most 32 bytes.
	Role string
	// Address is the HOST:PORT at which others reach the node, over TCP and UDP.
	Address string
	// Incarnation tells the lives of a node apart. It is at least 1 and must grow with
	// every start of the process; the time of the start will do.
	Incarnation uint64
	// Cores is how many cores the node offers, 0 to 65,536.
	Cores int
	// Labels are words of the user's, at most 32.
	Labels map[string]string
	// Build names the program for people, in at most 64 bytes.
	Build string
	// Catalog is a fingerprint of the node's catalog, in at most 32 bytes.
	Catalog string
	// Protocol is the range of versions of the protocol that the node speaks.
	Protocol protocol.Range
}

// announcement is metadata as it travels.
type announcement struct {
	Meta
	// leaving says that the process is about to leave: memberlist does not tell the others whether
	// an end was a crash.
	leaving bool
	// draining says that the process prepares to leave and accepts no new work.
	draining bool
}

// encode returns the metadata as bytes: the newest protocol, build, the oldest protocol, flags,
// incarnation, cores, role, address, catalog and labels in the order of their keys. Numbers are
// uvarints, and each text follows its length. Equal metadata have equal bytes. The fields up to the
// oldest protocol keep their order in every build, so that every build can read the versions of
// every other; later builds add fields only at the end.
func (a *announcement) encode() ([]byte, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	flags := byte(0)
	if a.leaving {
		flags |= flagLeaving
	}
	if a.draining {
		flags |= flagDraining
	}
	b := append(appendText([]byte{a.Protocol.Newest}, a.Build), a.Protocol.Oldest, flags)
	b = binary.AppendUvarint(b, a.Incarnation)
	b = binary.AppendUvarint(b, uint64(a.Cores))
	b = appendText(b, a.Role)
	b = appendText(appendText(b, a.Address), a.Catalog)
	b = binary.AppendUvarint(b, uint64(len(a.Labels)))
	for _, k := range slices.Sorted(maps.Keys(a.Labels)) {
		b = appendText(appendText(b, k), a.Labels[k])
	}
	if len(b) > MaxMeta {
		return nil, fmt.Errorf("metadata take %d bytes, at most %d are carried: shorten the labels", len(b), MaxMeta)
	}
	return b, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// check returns an error that names the field and what it accepts.
func (a *announcement) check() error {
	if !a.Protocol.Valid() {
		return fmt.Errorf("protocol %v is not a range of versions", a.Protocol)
	}
	if a.Incarnation == 0 {
		return errors.New("incarnation is 0, it begins at 1 and grows with every start")
	}
	if a.Cores < 0 || a.Cores > maxCores {
		return fmt.Errorf("cores is %d, accepted are 0 to %d", a.Cores, maxCores)
	}
	if err := checkText("role", a.Role, maxRole); err != nil {
		return err
	}
	if err := checkText("build", a.Build, maxBuild); err != nil {
		return err
	}
	if err := checkText("catalog", a.Catalog, maxCatalog); err != nil {
		return err
	}
	if err := checkAddress(a.Address); err != nil {
		return err
	}
	if len(a.Labels) > maxLabels {
		return fmt.Errorf("%d labels, accepted are at most %d", len(a.Labels), maxLabels)
	}
	for _, k := range slices.Sorted(maps.Keys(a.Labels)) {
		if k == "" {
			return errors.New("a label has an empty name")
		}
		if err := checkText("a label's name", k, maxText); err != nil {
			return err
		}
		if err := checkText("label "+k, a.Labels[k], maxText); err != nil {
			return err
		}
	}
	return nil
}

func checkText(what, s string, most int) error {
	if len(s) > most {
		return fmt.Errorf("%s has %d bytes, accepted are at most %d", what, len(s), most)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s is not UTF-8", what)
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("%s has the unprintable character %U", what, r)
		}
	}
	return nil
}

func checkAddress(s string) error {
	if err := checkText("address", s, maxAddress); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" {
		return fmt.Errorf("address is %q, accepted is HOST:PORT", s)
	}
	if p, err := strconv.ParseUint(port, 10, 16); err != nil || p == 0 {
		return fmt.Errorf("address is %q, its port must be 1 to 65535", s)
	}
	return nil
}

func checkName(s string) error {
	if problem := naming.Problem(s); problem != "" {
		return fmt.Errorf("name %.80q %s", s, problem)
	}
	return nil
}

// decode is the inverse of encode, for a node that speaks the versions own. It accepts only bytes
// that encode writes, or that a later build writes. It returns a [protocol.Error] without names if
// own and the sender's versions have none in common.
func decode(b []byte, own protocol.Range) (announcement, error) {
	if len(b) > MaxMeta {
		return announcement{}, fmt.Errorf("metadata have %d bytes, at most %d are accepted", len(b), MaxMeta)
	}
	if len(b) < 2 {
		return announcement{}, errTruncated
	}
	r := reader{left: b[1:]}
	a, err := r.versions(b[0], own)
	if err != nil {
		return announcement{}, err
	}
	flags := r.byte()
	a.leaving, a.draining = flags&flagLeaving != 0, flags&flagDraining != 0
	a.Incarnation = r.number()
	a.Cores = int(min(r.number(), maxCores+1))
	a.Role = r.text()
	a.Address = r.text()
	a.Catalog = r.text()
	if n := r.number(); n > maxLabels {
		r.fail(fmt.Errorf("%d labels, accepted are at most %d", n, maxLabels))
	} else if n > 0 && r.err == nil {
		a.Labels = make(map[string]string, n)
		for range n {
			k := r.text()
			a.Labels[k] = r.text()
		}
	}
	if r.err != nil {
		return announcement{}, r.err
	}
	if canonical, err := a.encode(); err != nil {
		return announcement{}, err
	} else if a.Protocol.Newest <= own.Newest && !bytes.Equal(canonical, b) {
		return announcement{}, errors.New("metadata are not in their canonical form")
	}
	return a, nil
}

// firstWithBuild is the first version of the protocol whose metadata contain the build.
const firstWithBuild = 2

// versions reads the fields that every build can read: the build and its versions.
func (r *reader) versions(newest byte, own protocol.Range) (a announcement, err error) {
	a.Protocol = protocol.Of(newest)
	if newest >= firstWithBuild {
		a.Build = r.text()
	}
	if newest >= protocol.Negotiated {
		a.Protocol.Oldest = r.byte()
	}
	switch {
	case r.err != nil:
		return a, r.err
	case !a.Protocol.Valid():
		return a, fmt.Errorf("protocol %v is not a range of versions", a.Protocol)
	case own.Agreed(a.Protocol) == 0:
		other := &protocol.Error{Range: a.Protocol, Others: own}
		if checkText("build", a.Build, maxBuild) == nil {
			other.Build = a.Build
		}
		return a, other
	}
	return a, nil
}

var errTruncated = errors.New("metadata are cut short")

// reader takes metadata apart. After the first error it returns zeros.
type reader struct {
	left []byte
	err  error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.left = nil
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.left)
	if n <= 0 {
		r.fail(errTruncated)
		return 0
	}
	r.left = r.left[n:]
	return v
}

func (r *reader) byte() byte {
	if len(r.left) == 0 {
		r.fail(errTruncated)
		return 0
	}
	b := r.left[0]
	r.left = r.left[1:]
	return b
}

func (r *reader) text() string {
	n := r.number()
	if n > uint64(len(r.left)) {
		r.fail(errTruncated)
		return ""
	}
	s := string(r.left[:n])
	r.left = r.left[n:]
	return s
}
