package identity

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// The files of an authority's folder and of an identity's folder.
const (
	authorityFile   = "ca.pem"
	authorityKey    = "ca.key"
	gossipFile      = "gossip.key"
	certificateFile = "cert.pem"
	keyFile         = "cert.key"
	// issuedFolder of an authority's folder holds a copy of the latest certificate of each subject,
	// ROLE-NAME.pem.
	issuedFolder = "issued"
)

const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	// skew is by how much clocks of a cluster may differ when a certificate is new.
	skew = 5 * time.Minute
	// host is the one host name in certificates of nodes: a client asks for it, so that
	// no other role can pass for a node.
	host = "node.gradwire"

	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
	gossipBlock      = "GRADWIRE GOSSIP KEY"

	gossipSize = 32
)

// Init makes the authority of a new cluster in a folder that does not exist or is empty:
// ca.pem, which everybody may see, ca.key, which issues certificates, and gossip.key,
// which nodes share. It returns an error that wraps ErrExists rather than replace anything.
func Init(dir string) error { return initAt(dir, time.Now()) }

func initAt(dir string, now time.Time) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("identity: make a key: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "gradwire cluster authority"},
		NotBefore:    now.Add(-skew), NotAfter: now.Add(authorityLifetime),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return fmt.Errorf("identity: make the authority's certificate: %w", err)
	}
	key, err := encodeKey(private)
	if err != nil {
		return err
	}
	gossip := make([]byte, gossipSize)
	if _, err := rand.Read(gossip); err != nil {
		return fmt.Errorf("identity: make the key for gossip: %w", err)
	}
	return writeFolder(dir, []file{
		{authorityFile, encode(certificateBlock, der)},
		{authorityKey, key},
		{gossipFile, encode(gossipBlock, gossip)},
	})
}

// Issue makes a certificate for a subject, signed by the authority in caDir, in a folder that does
// not exist or is empty: ca.pem, cert.pem, cert.key, and for nodes gossip.key. It returns an error
// that wraps ErrExists rather than replace anything, ErrIssued where a certificate of the subject
// holds for longer than Soon and none is wanted beside it, ErrExpired where the authority is, and
// ErrPermissions where its key could be read by others.
func Issue(caDir, outDir string, subject Subject) error {
	return issueAt(caDir, outDir, subject, time.Now())
}

func issueAt(caDir, outDir string, subject Subject, now time.Time) error {
	if err := subject.check(); err != nil {
		return err
	}
	files, err := readFolder(caDir, authorityFile, authorityKey, gossipFile)
	if err != nil {
		return err
	}
	parent, signer, err := parseAuthority(files, now)
	if err != nil {
		return fmt.Errorf("identity: %s: %w", caDir, err)
	}
	if _, err := decode(files[gossipFile], gossipFile, gossipBlock); err != nil {
		return fmt.Errorf("identity: %s: %w", caDir, err)
	}
	if err := errors.Join(vacant(outDir), subject.issued(caDir, now)); err != nil {
		return err
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("identity: make a key: %w", err)
	}
	template, err := subject.template(now, parent)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return fmt.Errorf("identity: make the certificate of %s: %w", subject.Name, err)
	}
	key, err := encodeKey(private)
	if err != nil {
		return err
	}
	made := []file{
		{authorityFile, encode(certificateBlock, parent.Raw)},
		{certificateFile, encode(certificateBlock, der)},
		{keyFile, key},
	}
	if subject.Role == Node {
		made = append(made, file{gossipFile, files[gossipFile]})
	}
	if err := writeFolder(outDir, made); err != nil {
		return err
	}
	return subject.note(caDir, encode(certificateBlock, der))
}

// copyOf is where an authority keeps the latest certificate of a subject.
func (s Subject) copyOf(caDir string) string {
	return filepath.Join(caDir, issuedFolder, string(s.Role)+"-"+s.Name+".pem")
}

// issued returns an error that wraps ErrIssued if a certificate of the subject holds that does not
// end soon.
func (s Subject) issued(caDir string, now time.Time) error {
	name := s.copyOf(caDir)
	text, err := readFile(name, false)
	if errors.Is(err, fs.ErrNotExist) || s.Again {
		return nil
	}
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	c, err := parseCertificate(text, name)
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	if c.NotAfter.Sub(now) <= Soon {
		return nil
	}
	return fmt.Errorf("identity: %s was issued to %s %s on %s and holds until %s: %w; "+
		"another one would hold beside it, as --again asks for", name, s.Role, s.Name,
		c.NotBefore.Add(skew).UTC().Format(time.DateOnly), c.NotAfter.UTC().Format(time.DateOnly), ErrIssued)
}

// note keeps a copy of the subject's certificate.
func (s Subject) note(caDir string, certificate []byte) error {
	name := s.copyOf(caDir)
	err := os.MkdirAll(filepath.Dir(name), 0o700)
	if err == nil {
		err = os.WriteFile(name, certificate, 0o600)
	}
	if err != nil {
		return fmt.Errorf("identity: the certificate of %s is issued, but no copy of it is kept: %w", s.Name, err)
	}
	return nil
}

func (s Subject) template(now time.Time, parent *x509.Certificate) (*x509.Certificate, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	lifetime := s.Lifetime
	if lifetime == 0 {
		lifetime = DefaultLifetime
	}
	until := now.Add(lifetime)
	if until.After(parent.NotAfter) {
		until = parent.NotAfter
	}
	c := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: s.Name, OrganizationalUnit: []string{string(s.Role)}},
		URIs:         []*url.URL{s.uri()},
		NotBefore:    now.Add(-skew), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if s.Role == Node {
		c.DNSNames = []string{host}
		c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	return c, nil
}

func parseAuthority(files map[string][]byte, now time.Time) (*x509.Certificate, crypto.Signer, error) {
	parent, err := authorityIn(files)
	if err != nil {
		return nil, nil, err
	}
	if err := checkTime(parent, authorityFile, now); err != nil {
		return nil, nil, err
	}
	signer, err := parseKey(files[authorityKey], authorityKey, parent)
	return parent, signer, err
}

// authorityIn returns the certificate of the authority.
func authorityIn(files map[string][]byte) (*x509.Certificate, error) {
	c, err := parseCertificate(files[authorityFile], authorityFile)
	if err == nil && !c.IsCA {
		err = fmt.Errorf("%s is no authority's certificate", authorityFile)
	}
	return c, err
}

func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("identity: draw a serial number: %w", err)
	}
	return serial.Add(serial, big.NewInt(1)), nil
}

func encode(block string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: block, Bytes: der})
}

func encodeKey(private ed25519.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("identity: encode a key: %w", err)
	}
	return encode(keyBlock, der), nil
}

// decode returns what is in the one PEM block of a file.
func decode(text []byte, name, block string) ([]byte, error) {
	b, rest := pem.Decode(text)
	switch {
	case b == nil:
		return nil, fmt.Errorf("%s holds no PEM block, accepted is one of type %s", name, block)
	case b.Type != block:
		return nil, fmt.Errorf("%s holds a PEM block of type %.40q, accepted is %s", name, b.Type, block)
	case len(rest) > 0:
		return nil, fmt.Errorf("%s holds %d bytes behind its PEM block", name, len(rest))
	case block == gossipBlock && len(b.Bytes) != gossipSize:
		return nil, fmt.Errorf("%s holds a key of %d bytes, accepted are %d", name, len(b.Bytes), gossipSize)
	}
	return b.Bytes, nil
}

func parseCertificate(text []byte, name string) (*x509.Certificate, error) {
	der, err := decode(text, name, certificateBlock)
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// parseKey reads a private key, which must match the certificate.
func parseKey(text []byte, name string, c *x509.Certificate) (crypto.Signer, error) {
	der, err := decode(text, name, keyBlock)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s holds a key of type %T, accepted is Ed25519", name, key)
	}
	if public, ok := c.PublicKey.(ed25519.PublicKey); !ok || !public.Equal(private.Public()) {
		return nil, fmt.Errorf("%s is not the key of the certificate beside it: were files of two folders mixed?", name)
	}
	return private, nil
}

func checkTime(c *x509.Certificate, name string, now time.Time) error {
	switch {
	case now.Before(c.NotBefore):
		return fmt.Errorf("%s is valid from %s on, the clock here says %s: %w",
			name, c.NotBefore.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), ErrExpired)
	case !now.Before(c.NotAfter):
		return fmt.Errorf("%s expired at %s, the clock here says %s; issue a new one: %w",
			name, c.NotAfter.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), ErrExpired)
	}
	return nil
}
