package node

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/protos"
)

const (
	// requestPatience is how long a client may take to say what it wants.
	requestPatience = 10 * time.Second
	// showEvery is the least time between two states of a submission that is watched.
	showEvery = 100 * time.Millisecond
)

// answer carries out a request.
func (p *process) answer(c *request.Caller) error {
	var r protos.Request
	in := bufio.NewReader(c.Conn)
	if err := c.Conn.SetReadDeadline(time.Now().Add(requestPatience)); err != nil {
		return err
	}
	if err := request.Read(in, &r); err != nil {
		return refusal.Input(fmt.Errorf("the request cannot be read: %w", err))
	}
	if err := c.Conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if err := p.entered(); err != nil {
		return err
	}
	if r.GetAttach() != nil {
		return p.residents.Attach(c, in)
	}
	// The end of the connection, or anything behind the request, ends the answer.
	ctx, cancel := context.WithCancelCause(p.stop)
	defer cancel(nil)
	go func() {
		_, err := in.ReadByte()
		cancel(fmt.Errorf("the client is gone: %w", err))
	}()
	switch k := r.Kind.(type) {
	case *protos.Request_Submit:
		return p.answerSubmit(ctx, c, k.Submit)
	case *protos.Request_Nodes:
		return c.Reply(&protos.Reply{Kind: &protos.Reply_Processes{Processes: p.processes()}})
	case *protos.Request_Runs:
		return p.answerRuns(c)
	case *protos.Request_Watch:
		return p.answerWatch(ctx, c, k.Watch.Id)
	case *protos.Request_Log:
		return p.answerLog(ctx, c, k.Log)
	case *protos.Request_Stop:
		return p.answerStop(c, k.Stop.Id)
	case *protos.Request_Remove:
		return p.answerRemove(c, k.Remove.Id)
	case *protos.Request_Fetch:
		return p.answerFetch(c, k.Fetch.Id)
	case *protos.Request_Spawn:
		return p.residents.AnswerSpawn(ctx, c, k.Spawn)
	case *protos.Request_Actors:
		return p.residents.AnswerList(ctx, c, k.Actors.Name)
	}
	return refusal.Input(errors.New("this request is not known here: is the client newer than the cluster?"))
}

func (p *process) answerSubmit(ctx context.Context, c *request.Caller, m *protos.SubmitPlan) error {
	if err := c.May("submit plans", identity.Operator, identity.Client); err != nil {
		return err
	}
	s, err := p.submit(ctx, c.Name, m)
	if err != nil {
		return err
	}
	return c.Reply(&protos.Reply{Kind: &protos.Reply_Submitted{Submitted: &protos.Submitted{Id: s.id}}})
}

// processes are those of the cluster, as this one sees them.
func (p *process) processes() *protos.Processes {
	all := &protos.Processes{}
	states, trips := map[string]string{p.config.Name: "here"}, map[string]time.Duration{}
	for _, s := range p.node.Stats().Peers {
		states[s.Peer.Name], trips[s.Peer.Name] = s.State.String(), s.RoundTrip
	}
	for _, m := range p.members.View().Members {
		expires := p.others.expires(m.Name)
		if m.Name == p.config.Name {
			expires = p.expires()
		}
		all.Processes = append(all.Processes, &protos.Process{
			Name: m.Name, Address: m.Meta.Address, Role: m.Meta.Role, Cores: int32(m.Meta.Cores), Labels: m.Meta.Labels,
			Incarnation: m.Meta.Incarnation, State: states[m.Name], RoundTrip: int64(trips[m.Name]), Expires: expires,
		})
	}
	return all
}

// answerRuns tells what was submitted here, and what is known of submissions whose processes are away.
func (p *process) answerRuns(c *request.Caller) error {
	p.mu.Lock()
	submissions := append([]*submission(nil), p.submissions...)
	p.mu.Unlock()
	all := &protos.Submissions{}
	for _, s := range submissions {
		m, _, _ := s.now()
		m.Placement = nil // with many runs of many nodes it would be long
		m.Error = request.Text(m.Error, request.MaxListed)
		all.Submissions = append(all.Submissions, m)
	}
	all.Submissions = append(all.Submissions, p.others.away()...)
	return c.Reply(&protos.Reply{Kind: &protos.Reply_Submissions{Submissions: all}})
}

// answerWatch says how far a submission is with every change, until it has ended.
func (p *process) answerWatch(ctx context.Context, c *request.Caller, id string) error {
	s, err := p.find(id)
	if err != nil {
		return err
	}
	for {
		m, over, changed := s.now()
		if err := c.Reply(&protos.Reply{Kind: &protos.Reply_Submission{Submission: m}}); err != nil || over {
			return err
		}
		pause := time.NewTimer(showEvery)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// maxTold is how many lines of a log one message carries.
const maxTold = 500

func (p *process) answerLog(ctx context.Context, c *request.Caller, m *protos.ReadLog) error {
	s, err := p.find(m.Id)
	if err != nil {
		return err
	}
	for from := 0; ; {
		lines, next, over, changed := s.since(from)
		from = next
		for len(lines) > 0 {
			n := min(len(lines), maxTold)
			if err := c.Reply(&protos.Reply{Kind: &protos.Reply_Lines{Lines: &protos.LogLines{Lines: lines[:n]}}}); err != nil {
				return err
			}
			lines = lines[n:]
		}
		if over || !m.Follow {
			return c.Reply(&protos.Reply{Kind: &protos.Reply_Done{Done: &protos.Done{}}})
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *process) answerStop(c *request.Caller, id string) error {
	if err := c.May("stop runs", identity.Operator); err != nil {
		return err
	}
	s, err := p.find(id)
	if err != nil {
		return err
	}
	if s.over() {
		return refusal.Input(fmt.Errorf("run %s is over already", s.id))
	}
	s.halt(errStopped{c.Name})
	return c.Reply(&protos.Reply{Kind: &protos.Reply_Done{Done: &protos.Done{}}})
}

// answerRemove removes a submission that has ended, and its record.
func (p *process) answerRemove(c *request.Caller, id string) error {
	if err := c.May("remove runs", identity.Operator); err != nil {
		return err
	}
	s, err := p.find(id)
	if err != nil {
		return err
	}
	if m, over, _ := s.now(); !over {
		return refusal.Input(fmt.Errorf("run %s is %s; it can be removed when it has ended", s.id, m.State))
	}
	if err := p.remove(s); err != nil {
		return err
	}
	p.log("%s has removed run %s with its record in %s", c.Name, s.id, s.out)
	return c.Reply(&protos.Reply{Kind: &protos.Reply_Done{Done: &protos.Done{}}})
}

// answerFetch sends the folder of a record as an archive.
func (p *process) answerFetch(c *request.Caller, id string) error {
	s, err := p.find(id)
	if err != nil {
		return err
	}
	if m, over, _ := s.now(); !over {
		return refusal.Input(fmt.Errorf("run %s is %s; its record can be fetched when it has ended", s.id, m.State))
	}
	out := bufio.NewWriterSize(portions{c}, 256<<10)
	archive := tar.NewWriter(out)
	if err := errors.Join(pack(archive, s.out), archive.Close(), out.Flush()); err != nil {
		return err
	}
	return c.Reply(&protos.Reply{Kind: &protos.Reply_Done{Done: &protos.Done{}}})
}

// portions sends what is written to it.
type portions struct{ *request.Caller }

func (p portions) Write(b []byte) (int, error) {
	for sent := 0; sent < len(b); {
		n := min(len(b)-sent, 1<<20)
		if err := p.Reply(&protos.Reply{Kind: &protos.Reply_Portion{Portion: &protos.Portion{Bytes: b[sent : sent+n]}}}); err != nil {
			return sent, err
		}
		sent += n
	}
	return len(b), nil
}

// pack writes the files of a folder into an archive.
func pack(archive *tar.Writer, dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it was only read
		info, err := f.Stat()
		if err != nil {
			return err
		}
		head := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: info.Size(), ModTime: info.ModTime(), Format: tar.FormatPAX}
		if err := archive.WriteHeader(head); err != nil {
			return err
		}
		_, err = io.CopyN(archive, f, info.Size())
		return err
	})
}
