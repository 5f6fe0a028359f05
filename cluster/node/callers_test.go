package node

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/client"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/protos"
)

// diary keeps the lines of a process's log.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (l *diary) log(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *diary) has(parts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.Join(l.lines, "\n")
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// alonePlain is the configuration of a process that needs nobody else.
func alonePlain(t testing.TB, name string, log func(string)) Config {
	t.Helper()
	c := Config{Name: name, Bind: "127.0.0.1:0", Insecure: true, Out: t.TempDir(), Log: log}
	if err := c.complete(); err != nil {
		t.Fatal(err)
	}
	return c
}

// joining is a process that is no part of a cluster yet, although its port is open.
func joining(t testing.TB, log func(string)) *process {
	t.Helper()
	p := alonePlain(t, "joining", log).process()
	if err := p.openFiles(); err != nil {
		t.Fatal(err)
	}
	if err := p.listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// up starts a process that forms a cluster by itself.
func up(t testing.TB, log func(string)) *process {
	t.Helper()
	c := alonePlain(t, "up", log)
	c.Catalog.Datasets = catalog.Kinds[catalog.Loader]{} // nothing is trained
	p, err := start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// asks is a client's side of a request to a process: the first reply, if there is any.
func asks(t testing.TB, p *process, r *protos.Request) *protos.Reply {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close() //nolint:errcheck // a test's
	go p.client(there, transport.Peer{Name: "me", Role: identity.Operator})
	if err := here.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := request.Write(here, r); err != nil {
		t.Fatal(err)
	}
	var reply protos.Reply
	if err := request.Read(bufio.NewReader(here), &reply); err != nil {
		t.Fatal(err)
	}
	return &reply
}

// requests are one of each kind.
func requests() []*protos.Request {
	return []*protos.Request{
		{Kind: &protos.Request_Submit{Submit: &protos.SubmitPlan{File: "p.yaml", Text: "name: p\n",
			Place: []string{"a=b"}}}},
		{Kind: &protos.Request_Nodes{Nodes: &protos.ListNodes{}}},
		{Kind: &protos.Request_Runs{Runs: &protos.ListRuns{}}},
		{Kind: &protos.Request_Watch{Watch: &protos.WatchRun{Id: "a"}}},
		{Kind: &protos.Request_Log{Log: &protos.ReadLog{Id: "a", Follow: true}}},
		{Kind: &protos.Request_Stop{Stop: &protos.StopRun{Id: "a"}}},
		{Kind: &protos.Request_Remove{Remove: &protos.RemoveRun{Id: "a"}}},
		{Kind: &protos.Request_Fetch{Fetch: &protos.FetchRecord{Id: "a"}}},
		{Kind: &protos.Request_Spawn{Spawn: &protos.SpawnActor{Name: "x", Kind: "y", Cores: 1}}},
		{Kind: &protos.Request_Actors{Actors: &protos.ListActors{Name: "x"}}},
		{Kind: &protos.Request_Attach{Attach: &protos.AttachActors{}}},
		{},
	}
}

func TestEveryRequestToAProcessThatIsJoiningIsAnsweredWithTryAgain(t *testing.T) {
	p := joining(t, nil)
	for _, r := range requests() {
		no := asks(t, p, r).GetRefusal()
		if no == nil || !no.Again || no.Error != "process joining is joining the cluster" {
			t.Errorf("%v is answered with %v", r, no)
		}
	}
}

func TestClientOfAProcessThatIsJoiningLearnsThatItMayTryAgain(t *testing.T) {
	p := joining(t, nil)
	_, err := client.Connect(t.Context(), []string{p.address()}, nil)
	var later *refusal.AgainError
	if !errors.As(err, &later) || !strings.Contains(err.Error(), "process joining is joining the cluster") {
		t.Error(err)
	}
}

func TestProcessThatStopsTellsItsCallersSo(t *testing.T) {
	p := up(t, nil)
	p.halt(experiment.ErrStopping)
	if no := asks(t, p, requests()[1]).GetRefusal(); no == nil || !no.Again || no.Error != "process up is stopping" {
		t.Errorf("answered with %v", no)
	}
}

func TestRequestAtWhichAProcessFailsEndsAlone(t *testing.T) {
	log := &diary{}
	p := joining(t, log.log)
	p.joined.Store(true) // which is not true: it has no members
	for range 2 {
		no := asks(t, p, requests()[1]).GetRefusal()
		if no == nil || no.Again || no.Input || !strings.Contains(no.Error,
			"process joining has failed at this, by a fault") {
			t.Errorf("answered with %v", no)
		}
	}
	if !log.has("a request of somebody has panicked: ", "(*process).processes") {
		t.Errorf("the log is %q", log.lines)
	}
}

// FuzzRequest sends anything to a process that is joining, is up, is stopping or has stopped: it
// answers or closes the connection.
func FuzzRequest(f *testing.F) {
	for state := range uint8(4) {
		for _, r := range requests() {
			b, err := proto.Marshal(r)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(state, state, b)
		}
	}
	log := &diary{}
	before, now, stopping, over := joining(f, log.log), up(f, log.log), joining(f, log.log), up(f, log.log)
	known := `{"id":"a","plan":"p","folder":"p-a","state":"done"}` + "\n"
	if err := os.WriteFile(filepath.Join(now.config.Out, "submissions-up.jsonl"), []byte(known), 0o600); err != nil {
		f.Fatal(err)
	}
	now.queue.Remember()
	stopping.joined.Store(true)
	stopping.halt(experiment.ErrStopping)
	over.halt(experiment.ErrStopping)
	roles := []identity.Role{identity.Operator, identity.Client, identity.Node}
	f.Fuzz(func(t *testing.T, state, role uint8, asked []byte) {
		p := []*process{before, now, stopping, over}[state%4]
		here, there := net.Pipe()
		c := &request.Caller{Conn: there, Name: "me", Role: roles[role%3]}
		go func() {
			if state%4 != 3 {
				p.serve(c)
				return
			}
			if err := p.attend(c); err != nil { // it was let in before the process stopped
				c.Refuse(err)
			}
			p.dismiss(c)
		}()
		if err := here.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = here.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(asked))), asked...))
		}()
		var reply protos.Reply
		if err := request.Read(bufio.NewReader(here), &reply); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("no answer to %q", asked)
		}
		_ = here.Close()
		if log.has("has panicked") {
			t.Fatalf("%q: %s", asked, strings.Join(log.lines, "\n"))
		}
	})
}
