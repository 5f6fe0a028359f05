package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Load reads the folder that Issue made, and checks that its files belong together. The
// error wraps ErrExpired where the certificate or its authority is not valid now, and
// ErrPermissions where others could read a key or write the folder.
func Load(dir string) (*Identity, error) {
	names := []string{authorityFile, certificateFile, keyFile}
	if _, err := os.Lstat(filepath.Join(dir, gossipFile)); !errors.Is(err, fs.ErrNotExist) {
		names = append(names, gossipFile)
	}
	files, err := readFolder(dir, names...)
	if err != nil {
		return nil, err
	}
	id, err := parse(files, time.Now())
	if err != nil {
		return nil, fmt.Errorf("identity: %s: %w", dir, err)
	}
	return id, nil
}

func parse(files map[string][]byte, now time.Time) (*Identity, error) {
	authority, err := authorityIn(files)
	if err != nil {
		return nil, err
	}
	own, err := parseCertificate(files[certificateFile], certificateFile)
	if err != nil {
		return nil, err
	}
	subject, err := subjectOf(own)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", certificateFile, err)
	}
	key, err := parseKey(files[keyFile], keyFile, own)
	if err != nil {
		return nil, err
	}
	if err := own.CheckSignatureFrom(authority); err != nil {
		return nil, fmt.Errorf("%s was not issued by the authority in %s: %w", certificateFile, authorityFile, err)
	}
	if err := checkTime(authority, authorityFile, now); err != nil {
		return nil, err
	}
	if err := checkTime(own, certificateFile, now); err != nil {
		return nil, err
	}
	id := &Identity{
		name: subject.Name, role: subject.Role, expires: own.NotAfter, authority: x509.NewCertPool(),
		certificate: tls.Certificate{Certificate: [][]byte{own.Raw}, PrivateKey: key, Leaf: own},
	}
	id.authority.AddCert(authority)
	if authority.NotAfter.Before(id.expires) {
		id.expires = authority.NotAfter
	}
	text, ok := files[gossipFile]
	if ok != (subject.Role == Node) {
		return nil, fmt.Errorf("%s is there: %v, and the role is %s: only nodes, and all of these, have it", gossipFile,
			ok, subject.Role)
	}
	if ok {
		id.gossip, err = decode(text, gossipFile, gossipBlock)
	}
	return id, err
}
