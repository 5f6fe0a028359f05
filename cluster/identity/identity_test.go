package identity

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/naming"
)

// cluster makes an authority and one identity's folder for each subject.
func cluster(t testing.TB, subjects ...Subject) (ca string, dirs []string) {
	t.Helper()
	root := t.TempDir()
	ca = filepath.Join(root, "ca")
	if err := Init(ca); err != nil {
		t.Fatal(err)
	}
	for i, s := range subjects {
		dir := filepath.Join(root, fmt.Sprint(i))
		if err := Issue(ca, dir, s); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	return ca, dirs
}

func load(t testing.TB, dir string) *Identity {
	t.Helper()
	id, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func read(t testing.TB, name ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(name...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// meet lets two sides shake hands and returns what each of them sees, or the error.
func meet(t testing.TB, server, client *tls.Config) (s, c tls.ConnectionState, failed error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test's
	done := make(chan error, 1)
	go func() {
		raw, err := l.Accept()
		if err != nil {
			done <- err
			return
		}
		conn := tls.Server(raw, server)
		defer conn.Close() //nolint:errcheck // a test's
		err = conn.Handshake()
		s = conn.ConnectionState()
		if err == nil {
			_, err = conn.Write([]byte{1})
		}
		done <- err
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(raw, client)
	defer conn.Close() //nolint:errcheck // a test's
	failed = conn.Handshake()
	c = conn.ConnectionState()
	if failed == nil { // in TLS 1.3 a client hears with its first read that it was refused
		_, failed = conn.Read(make([]byte, 1))
	}
	raw.Close() //nolint:errcheck // a test's
	return s, c, errors.Join(<-done, failed)
}

func TestNodesProveNameAndRoleToEachOther(t *testing.T) {
	_, dirs := cluster(t, Subject{Name: "server", Role: Node}, Subject{Name: "w_0.a-B", Role: Node})
	a, b := load(t, dirs[0]), load(t, dirs[1])
	if a.Name() != "server" || a.Role() != Node || b.Name() != "w_0.a-B" {
		t.Errorf("loaded %s %s and %s", a.Name(), a.Role(), b.Name())
	}
	if left := time.Until(a.Expires()); left < DefaultLifetime-time.Hour || left > DefaultLifetime {
		t.Errorf("expires in %v, want %v", left, DefaultLifetime)
	}
	for _, protocol := range []string{Actors, Gossip} {
		s, c, err := meet(t, a.ServerTLS(Actors, Gossip), b.ClientTLS(protocol))
		if err != nil {
			t.Fatal(err)
		}
		for _, side := range []struct {
			state tls.ConnectionState
			want  string
		}{{s, "w_0.a-B"}, {c, "server"}} {
			name, role, err := Peer(side.state)
			if err != nil || name != side.want || role != Node {
				t.Errorf("the other side is %s %s (%v), want node %s", role, name, err, side.want)
			}
			if side.state.Version != tls.VersionTLS13 || side.state.NegotiatedProtocol != protocol {
				t.Errorf("version %x, protocol %s", side.state.Version, side.state.NegotiatedProtocol)
			}
		}
	}
}

func TestGossipKeyIsSharedByNodesAlone(t *testing.T) {
	ca, dirs := cluster(t, Subject{Name: "a", Role: Node}, Subject{Name: "b", Role: Node},
		Subject{Name: "o", Role: Operator}, Subject{Name: "c", Role: Client})
	key := load(t, dirs[0]).GossipKey()
	if len(key) != 32 || !bytes.Equal(key, load(t, dirs[1]).GossipKey()) {
		t.Errorf("keys of %d bytes, or not the same", len(key))
	}
	key[0]++
	if bytes.Equal(key, load(t, dirs[0]).GossipKey()) {
		t.Error("the second load returned the key of the first")
	}
	for _, dir := range dirs[2:] {
		if id := load(t, dir); id.GossipKey() != nil {
			t.Errorf("role %s has the key for gossip", id.Role())
		}
	}
	if other, _ := cluster(t); bytes.Equal(read(t, other, gossipFile), read(t, ca, gossipFile)) {
		t.Error("two clusters have one key for gossip")
	}
}

func TestStrangersAreRefused(t *testing.T) {
	ca, dirs := cluster(t, Subject{Name: "a", Role: Node}, Subject{Name: "c", Role: Client},
		Subject{Name: "o", Role: Operator})
	_, others := cluster(t, Subject{Name: "a", Role: Node})
	a, client, operator, stranger := load(t, dirs[0]), load(t, dirs[1]), load(t, dirs[2]), load(t, others[0])
	expired := filepath.Join(t.TempDir(), "x")
	if err := issueAt(ca, expired, Subject{Name: "x", Role: Node, Lifetime: time.Hour},
		time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	old := load(t, expired)
	late := func(c *tls.Config) *tls.Config {
		c.Time = func() time.Time { return time.Now().Add(2 * time.Hour) }
		return c
	}
	bare := a.ClientTLS(Actors)
	bare.Certificates = nil
	two := a.ClientTLS(Actors)
	two.MinVersion, two.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	mute := a.ClientTLS()
	mute.VerifyConnection = nil
	for name, test := range map[string]struct {
		server, client *tls.Config
		want           string // in the error; empty where all is well
	}{
		"client calls for clients":   {a.ServerTLS(Actors, Clients), client.ClientTLS(Clients), ""},
		"operator calls for clients": {a.ServerTLS(Actors, Clients), operator.ClientTLS(Clients), ""},
		"node calls for clients":     {a.ServerTLS(Actors, Clients), a.ClientTLS(Clients), ""},
		"client calls for actors":    {a.ServerTLS(Actors, Gossip), client.ClientTLS(Actors), "has role client"},
		"operator calls for actors": {a.ServerTLS(Actors, Gossip), operator.ClientTLS(Actors),
			"has role operator"},
		"client calls for gossip": {a.ServerTLS(Actors, Gossip), client.ClientTLS(Gossip), "has role client"},
		"operator calls for gossip": {a.ServerTLS(Actors, Gossip), operator.ClientTLS(Gossip),
			"has role operator"},
		"operator answers as a node":       {operator.ServerTLS(Actors), a.ClientTLS(Actors), "node.gradwire"},
		"operator answers a client":        {operator.ServerTLS(Clients), client.ClientTLS(Clients), "node.gradwire"},
		"caller of another cluster":        {a.ServerTLS(Actors), stranger.ClientTLS(Actors), "authority"},
		"server of another cluster":        {stranger.ServerTLS(Actors), a.ClientTLS(Actors), "authority"},
		"caller whose time has passed":     {late(a.ServerTLS(Actors)), old.ClientTLS(Actors), "expired"},
		"server whose time has passed":     {old.ServerTLS(Actors), late(a.ClientTLS(Actors)), "expired"},
		"caller without a certificate":     {a.ServerTLS(Actors), bare, "certificate"},
		"caller with TLS 1.2":              {a.ServerTLS(Actors), two, "version"},
		"caller without a protocol":        {a.ServerTLS(Actors), mute, `protocol ""`},
		"caller with another protocol":     {a.ServerTLS(Actors), a.ClientTLS("h2"), "no application protocol"},
		"server that takes actors but not": {a.ServerTLS(Gossip), a.ClientTLS(Actors), "no application protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := meet(t, test.server, test.client)
			if test.want == "" && err != nil {
				t.Error(err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestNobodyIsNamedByAnUnverifiedConnection(t *testing.T) {
	_, dirs := cluster(t, Subject{Name: "a", Role: Node})
	state := tls.ConnectionState{}
	if _, _, err := Peer(state); err == nil {
		t.Error("a connection without a certificate has a name")
	}
	state.PeerCertificates = append(state.PeerCertificates, load(t, dirs[0]).certificate.Leaf)
	if _, _, err := Peer(state); err == nil {
		t.Error("a certificate that was not verified has a role")
	}
}

func TestBadSubjectsGetNoCertificate(t *testing.T) {
	ca, _ := cluster(t)
	for _, s := range []Subject{
		{Name: "", Role: Node}, {Name: "-a", Role: Node}, {Name: "..", Role: Node}, {Name: "a/b", Role: Node},
		{Name: "ä", Role: Node},
		{Name: "a b", Role: Node}, {Name: strings.Repeat("a", naming.Max+1), Role: Node},
		{Name: "a", Role: "root"}, {Name: "a"}, {Name: "a", Role: Node, Lifetime: -1},
	} {
		dir := filepath.Join(t.TempDir(), "out")
		if err := Issue(ca, dir, s); err == nil || !strings.Contains(err.Error(), "accepted are") {
			t.Errorf("%+v: error %v, want one that says what is accepted", s, err)
		}
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("%+v: a folder was left", s)
		}
	}
	if err := Issue(ca, filepath.Join(t.TempDir(), "out"),
		Subject{Name: strings.Repeat("a", naming.Max), Role: Client}); err != nil {
		t.Error(err)
	}
}

func TestNothingIsReplaced(t *testing.T) {
	ca, dirs := cluster(t, Subject{Name: "a", Role: Node})
	before := read(t, ca, authorityKey)
	if err := Init(ca); !errors.Is(err, ErrExists) {
		t.Errorf("error %v, want that the folder exists", err)
	}
	if !bytes.Equal(before, read(t, ca, authorityKey)) {
		t.Error("the authority's key was replaced")
	}
	before = read(t, dirs[0], keyFile)
	if err := Issue(ca, dirs[0], Subject{Name: "a", Role: Node}); !errors.Is(err, ErrExists) {
		t.Errorf("error %v, want that the folder exists", err)
	}
	if !bytes.Equal(before, read(t, dirs[0], keyFile)) {
		t.Error("a key was replaced")
	}
	entries, err := os.ReadDir(filepath.Dir(ca))
	if err != nil || len(entries) != 2 {
		t.Errorf("%d entries beside each other (%v), want the two folders and nothing left behind", len(entries), err)
	}
	empty := t.TempDir()
	if err := Issue(ca, empty, Subject{Name: "b", Role: Node}); err != nil {
		t.Errorf("an empty folder was refused: %v", err)
	}
}

func TestSecretsAreForTheirOwnerAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions are kept elsewhere on Windows")
	}
	ca, dirs := cluster(t, Subject{Name: "a", Role: Node})
	for _, dir := range []string{ca, dirs[0]} {
		if err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			about, err := d.Info()
			if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; err == nil &&
				about.Mode().Perm() != want {
				t.Errorf("%s has permissions %v, want %v", name, about.Mode().Perm(), want)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	again := filepath.Join(t.TempDir(), "again")
	use := map[string]func() error{
		filepath.Join(dirs[0], keyFile):    func() error { _, err := Load(dirs[0]); return err },
		filepath.Join(dirs[0], gossipFile): func() error { _, err := Load(dirs[0]); return err },
		dirs[0]:                            func() error { _, err := Load(dirs[0]); return err },
		filepath.Join(ca, authorityKey):    func() error { return Issue(ca, again, Subject{Name: "b", Role: Node}) },
	}
	for name, do := range use {
		about, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, about.Mode().Perm()|0o020|0o040); err != nil {
			t.Fatal(err)
		}
		if err := do(); !errors.Is(err, ErrPermissions) {
			t.Errorf("%s open to others: error %v", name, err)
		}
		if err := os.Chmod(name, about.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	for name, do := range use {
		if err := do(); err != nil {
			t.Errorf("%s closed again: %v", name, err)
		}
	}
}

func TestTimesAreChecked(t *testing.T) {
	now := time.Now()
	root := t.TempDir()
	ca, dir := filepath.Join(root, "ca"), filepath.Join(root, "a")
	if err := initAt(ca, now.Add(-authorityLifetime+time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := Issue(ca, dir, Subject{Name: "a", Role: Node}); err != nil {
		t.Fatal(err)
	}
	if left := load(t, dir).Expires().Sub(now); left > time.Hour+time.Minute {
		t.Errorf("expires in %v, its authority in 1h", left)
	}
	files, err := readFolder(dir, authorityFile, certificateFile, keyFile, gossipFile)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[time.Duration]string{0: "", 2 * time.Hour: "expired at",
		-365 * 24 * time.Hour: "valid from"} {
		_, err := parse(files, now.Add(at))
		if (want == "") != (err == nil) || err != nil &&
			(!errors.Is(err, ErrExpired) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v later: error %v, want one with %q", at, err, want)
		}
	}
	if err := issueAt(ca, filepath.Join(root, "b"), Subject{Name: "b", Role: Node},
		now.Add(2*time.Hour)); !errors.Is(err, ErrExpired) {
		t.Errorf("an authority that has expired issued a certificate: %v", err)
	}
}

func TestFilesThatDoNotBelongTogetherAreRefused(t *testing.T) {
	ca, dirs := cluster(t, Subject{Name: "a", Role: Node}, Subject{Name: "b", Role: Node},
		Subject{Name: "c", Role: Client})
	_, others := cluster(t, Subject{Name: "a", Role: Node})
	for name, test := range map[string]struct {
		file string
		text []byte // nil removes the file
		want string
	}{
		"key of another": {keyFile, read(t, dirs[1], keyFile), "not the key of the certificate"},
		"certificate of another": {certificateFile, read(t, dirs[1], certificateFile),
			"not the key of the certificate"},
		"authority of another":     {authorityFile, read(t, others[0], authorityFile), "not issued by the authority"},
		"own certificate as CA":    {authorityFile, read(t, dirs[0], certificateFile), "no authority's certificate"},
		"CA as own certificate":    {certificateFile, read(t, ca, authorityFile), "is an authority's"},
		"certificate where key is": {keyFile, read(t, dirs[0], certificateFile), "PEM block of type"},
		"key where certificate is": {certificateFile, read(t, dirs[0], keyFile), "PEM block of type"},
		"no gossip key":            {gossipFile, nil, "only nodes"},
		"no key":                   {keyFile, nil, "no such file"},
		"short gossip key":         {gossipFile, encode(gossipBlock, make([]byte, 31)), "31 bytes"},
		"empty certificate":        {certificateFile, []byte{}, "no PEM block"},
		"two certificates": {certificateFile, bytes.Repeat(read(t, dirs[0], certificateFile), 2),
			"behind its PEM block"},
		"more than is ever read":     {certificateFile, make([]byte, maxFile+1), "more than"},
		"PEM around what is no DER":  {certificateFile, encode(certificateBlock, []byte("x")), certificateFile},
		"PEM around what is no key":  {keyFile, encode(keyBlock, []byte("x")), keyFile},
		"gossip key with a wrong ID": {gossipFile, encode(keyBlock, make([]byte, 32)), "PEM block of type"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{authorityFile, certificateFile, keyFile, gossipFile} {
				text := read(t, dirs[0], file)
				if file == test.file {
					text = test.text
				}
				if text != nil {
					if err := writeFile(filepath.Join(dir, file), text); err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
	if err := writeFile(filepath.Join(dirs[2], gossipFile), read(t, ca, gossipFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dirs[2]); err == nil {
		t.Error("a client with the key for gossip was accepted")
	}
}

// FuzzLoad gives hostile files to the parser, which must refuse all that is not what was issued.
func FuzzLoad(f *testing.F) {
	_, dirs := cluster(f, Subject{Name: "a", Role: Node}, Subject{Name: "b", Role: Client})
	for _, dir := range dirs {
		f.Add(read(f, dir, authorityFile), read(f, dir, certificateFile), read(f, dir, keyFile),
			read(f, dirs[0], gossipFile))
	}
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"), []byte(nil), []byte("x"), []byte{0})
	now := time.Now()
	f.Fuzz(func(t *testing.T, authority, certificate, key, gossip []byte) {
		id, err := parse(map[string][]byte{authorityFile: authority, certificateFile: certificate, keyFile: key,
			gossipFile: gossip}, now)
		if err != nil {
			return
		}
		if id.role != Node || naming.Problem(id.name) != "" || len(id.gossip) != gossipSize || !now.Before(id.expires) {
			t.Errorf("accepted %+v", id)
		}
	})
}

func TestSecondCertificateOfOneNameIsRefusedUnlessItIsAskedForOrTheFirstEndsSoon(t *testing.T) {
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca")
	if err := Init(ca); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	issue := func(out string, at time.Time, s Subject) error { return issueAt(ca, filepath.Join(dir, out), s, at) }
	a := Subject{Name: "a", Role: Node}
	if err := issue("first", now, a); err != nil {
		t.Fatal(err)
	}
	err := issue("second", now, a)
	if !errors.Is(err, ErrIssued) {
		t.Fatalf("a second one: %v", err)
	}
	for _, part := range []string{filepath.Join("ca", "issued", "node-a.pem"), "--again"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("no %s in %v", part, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "second")); err == nil {
		t.Error("a folder for nothing")
	}
	if err := issue("operator", now, Subject{Name: "a", Role: Operator}); err != nil {
		t.Errorf("another role: %v", err)
	}
	if err := issue("asked", now, Subject{Name: "a", Role: Node, Again: true}); err != nil {
		t.Errorf("asked for: %v", err)
	}
	if err := issue("early", now.Add(DefaultLifetime-Soon-time.Hour), a); !errors.Is(err, ErrIssued) {
		t.Errorf("31 days before the end: %v", err)
	}
	if err := issue("soon", now.Add(DefaultLifetime-Soon+time.Hour), a); err != nil {
		t.Errorf("29 days before the end: %v", err)
	}
}

func TestIdentitySucceedsOneOfTheSameNodeInTheSameClusterAlone(t *testing.T) {
	dir := t.TempDir()
	load := func(ca, name string, role Role) *Identity {
		t.Helper()
		out := filepath.Join(t.TempDir(), name)
		if _, err := os.Stat(filepath.Join(dir, ca)); err != nil {
			if err := Init(filepath.Join(dir, ca)); err != nil {
				t.Fatal(err)
			}
		}
		if err := Issue(filepath.Join(dir, ca), out, Subject{Name: name, Role: role, Again: true}); err != nil {
			t.Fatal(err)
		}
		id, err := Load(out)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := load("ca", "a", Node)
	if err := load("ca", "a", Node).Succeeds(first); err != nil {
		t.Error(err)
	}
	otherGossip := *first
	otherGossip.gossip = make([]byte, gossipSize)
	for what, id := range map[string]*Identity{
		"another name": load("ca", "b", Node), "another role": load("ca", "a", Operator),
		"another authority": load("other", "a", Node), "another key": &otherGossip,
	} {
		if err := id.Succeeds(first); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}
