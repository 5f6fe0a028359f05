// Package identity says who may take part in a cluster.
//
// Every cluster has its own authority: a certificate authority and a key for gossip, both made
// by Init. Issue makes a certificate for a name and a role. Load reads it together with
// everything else that a process needs, and an Identity turns it into TLS 1.3 configurations in
// which both sides prove that they belong to the cluster.
//
// The certificate carries role and name as a URI, gradwire://node/NAME. A process trusts only
// its cluster's authority and ignores the machine's list of authorities.
package identity

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gradwire/gradwire/cluster/naming"
)

// Role says what the holder of a certificate may do.
type Role string

// The roles.
const (
	// Node is a process that hosts nodes and takes part in gossip.
	Node Role = "node"
	// Operator may change what the cluster does.
	Operator Role = "operator"
	// Client may submit plans and watch.
	Client Role = "client"
)

var roles = []Role{Node, Operator, Client}

// The protocols that share a process's port, told apart by ALPN (RFC 7301).
const (
	// Actors is the traffic between actors, open to nodes alone.
	Actors = "gradwire/1"
	// Gossip is the traffic of membership, open to nodes alone.
	Gossip = "gradwire-gossip/1"
	// Clients is how plans are submitted and runs are watched and changed, open to every
	// role; what a role may ask for is decided where it is asked.
	Clients = "gradwire-client/1"
	// Copies is how records of submissions get to the processes that hold them, open to nodes
	// alone.
	Copies = "gradwire-copies/1"
)

// The errors that a program may want to tell apart.
var (
	// ErrExists says that a folder holds something already.
	ErrExists = errors.New("this folder exists and is not empty")
	// ErrIssued says that a subject has a certificate already.
	ErrIssued = errors.New("it has a certificate already")
	// ErrExpired says that a certificate is not valid at this time.
	ErrExpired = errors.New("the certificate is not valid now")
	// ErrPermissions says that a secret could be read, or a folder written, by others.
	ErrPermissions = errors.New("the permissions are too open")
	// ErrRole says that a certificate's role does not allow what was asked for.
	ErrRole = errors.New("the role is not accepted here")
)

// Subject is whom a certificate is issued for.
type Subject struct {
	// Name is a letter or digit, then letters, digits, dots, dashes and underscores,
	// at most [naming.Max] bytes.
	Name string
	Role Role
	// Lifetime is how long the certificate is valid, at most as long as the authority
	// itself; 0 stands for DefaultLifetime.
	Lifetime time.Duration
	// Again issues a certificate although the latest one of this name and role holds for longer
	// than Soon. Both hold then.
	Again bool
}

// DefaultLifetime is how long a certificate is valid.
const DefaultLifetime = 365 * 24 * time.Hour

// Identity is what a process is in its cluster. It is never changed once loaded.
type Identity struct {
	name        string
	role        Role
	expires     time.Time
	authority   *x509.CertPool
	certificate tls.Certificate
	gossip      []byte
}

// Name is the name in the certificate.
func (id *Identity) Name() string { return id.name }

// Role is the role in the certificate.
func (id *Identity) Role() Role { return id.role }

// Expires is the instant from which no peer accepts the certificate.
func (id *Identity) Expires() time.Time { return id.expires }

// GossipKey returns a copy of the key that encrypts gossip, 32 bytes; nil for roles
// other than Node.
func (id *Identity) GossipKey() []byte { return slices.Clone(id.gossip) }

// Soon is how long before a certificate ends its process warns of it. From then on Issue issues
// another one for the same name without being told to.
const Soon = 30 * 24 * time.Hour

// Succeeds returns an error unless the identity can replace an earlier one in a running process: it
// must have the same name and role, and belong to the same cluster.
func (id *Identity) Succeeds(before *Identity) error {
	switch {
	case id.name != before.name || id.role != before.role:
		return fmt.Errorf("identity: it is of %s %s, the one before of %s %s", id.role, id.name, before.role,
			before.name)
	case !id.authority.Equal(before.authority):
		return fmt.Errorf("identity: another authority issued the certificate of %s; restart the process", id.name)
	case !bytes.Equal(id.gossip, before.gossip):
		return errors.New("identity: its key for gossip is another one, " +
			"which cannot be replaced while the process runs")
	}
	return nil
}

func (s Subject) check() error {
	if naming.Problem(s.Name) != "" {
		return fmt.Errorf("identity: %.80q is no name; accepted are a letter or digit, then letters a to z, digits, "+
			"dots, dashes and underscores, at most %d", s.Name, naming.Max)
	}
	if !slices.Contains(roles, s.Role) {
		return fmt.Errorf("identity: %.40q is no role; accepted are %s, %s and %s", s.Role, Node, Operator, Client)
	}
	if s.Lifetime < 0 {
		return fmt.Errorf("identity: a lifetime of %v; accepted are positive ones, and 0 for %v", s.Lifetime,
			DefaultLifetime)
	}
	return nil
}

// uri is how a name and a role stand in a certificate.
func (s Subject) uri() *url.URL {
	return &url.URL{Scheme: "gradwire", Host: string(s.Role), Path: "/" + s.Name}
}

// subjectOf reads name and role from a certificate.
func subjectOf(c *x509.Certificate) (Subject, error) {
	if c.IsCA {
		return Subject{}, errors.New("identity: the certificate is an authority's and names no process")
	}
	if len(c.URIs) != 1 {
		return Subject{}, fmt.Errorf("identity: the certificate holds %d URIs, accepted is one, gradwire://ROLE/NAME",
			len(c.URIs))
	}
	u := c.URIs[0]
	s := Subject{Role: Role(u.Host), Name: strings.TrimPrefix(u.Path, "/")}
	if err := s.check(); err != nil {
		return Subject{}, err
	}
	if *u != *s.uri() {
		return Subject{}, fmt.Errorf("identity: the certificate holds %.100q, accepted is gradwire://ROLE/NAME", u)
	}
	return s, nil
}
