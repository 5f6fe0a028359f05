package driver

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
	"github.com/gradwire/gradwire/protos"
)

const (
	// requestPatience is how long a client may take to say what it wants.
	requestPatience = 10 * time.Second
	// showEvery is the least time between two states of a submission that is watched.
	showEvery = 100 * time.Millisecond
)

func (c *caller) say(m *protos.Reply) error { return say(c.conn, m) }

// may returns an error if the caller's role does not allow something.
func (c *caller) may(what string, roles ...identity.Role) error {
	for _, r := range roles {
		if c.role == r {
			return nil
		}
	}
	return input(fmt.Errorf("%s has role %s and may not %s, which takes role %s: %w", c.name, c.role, what, roles[0], identity.ErrRole))
}

// answer carries out a request.
func (p *process) answer(c *caller) error {
	var r protos.Request
	in := bufio.NewReader(c.conn)
	if err := c.conn.SetReadDeadline(time.Now().Add(requestPatience)); err != nil {
		return err
	}
	if err := hear(in, &r); err != nil {
		return input(fmt.Errorf("the request cannot be read: %w", err))
	}
	if err := c.conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if err := p.entered(); err != nil {
		return err
	}
	if r.GetAttach() != nil {
		return p.residents.attach(c, in)
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
		return c.say(&protos.Reply{Kind: &protos.Reply_Processes{Processes: p.processes()}})
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
		return p.residents.answerSpawn(ctx, c, k.Spawn)
	case *protos.Request_Actors:
		return p.residents.answerList(ctx, c, k.Actors.Name)
	}
	return input(errors.New("this request is not known here: is the client newer than the cluster?"))
}

func (p *process) answerSubmit(ctx context.Context, c *caller, m *protos.SubmitPlan) error {
	if err := c.may("submit plans", identity.Operator, identity.Client); err != nil {
		return err
	}
	s, err := p.submit(ctx, c.name, m)
	if err != nil {
		return err
	}
	return c.say(&protos.Reply{Kind: &protos.Reply_Submitted{Submitted: &protos.Submitted{Id: s.id}}})
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
func (p *process) answerRuns(c *caller) error {
	p.mu.Lock()
	submissions := append([]*submission(nil), p.submissions...)
	p.mu.Unlock()
	all := &protos.Submissions{}
	for _, s := range submissions {
		m, _, _ := s.now()
		m.Placement = nil // with many runs of many nodes it would be long
		m.Error = words(m.Error, maxListed)
		all.Submissions = append(all.Submissions, m)
	}
	all.Submissions = append(all.Submissions, p.others.away()...)
	return c.say(&protos.Reply{Kind: &protos.Reply_Submissions{Submissions: all}})
}

// answerWatch says how far a submission is with every change, until it has ended.
func (p *process) answerWatch(ctx context.Context, c *caller, id string) error {
	s, err := p.find(id)
	if err != nil {
		return err
	}
	for {
		m, over, changed := s.now()
		if err := c.say(&protos.Reply{Kind: &protos.Reply_Submission{Submission: m}}); err != nil || over {
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

func (p *process) answerLog(ctx context.Context, c *caller, m *protos.ReadLog) error {
	s, err := p.find(m.Id)
	if err != nil {
		return err
	}
	for from := 0; ; {
		lines, next, over, changed := s.since(from)
		from = next
		for len(lines) > 0 {
			n := min(len(lines), maxTold)
			if err := c.say(&protos.Reply{Kind: &protos.Reply_Lines{Lines: &protos.LogLines{Lines: lines[:n]}}}); err != nil {
				return err
			}
			lines = lines[n:]
		}
		if over || !m.Follow {
			return c.say(&protos.Reply{Kind: &protos.Reply_Done{Done: &protos.Done{}}})
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *process) answerStop(c *caller, id string) error {
	if err := c.may("stop runs", identity.Operator); err != nil {
		return err
	}
	s, err := p.find(id)
	if err != nil {
		return err
	}
	if s.over() {
		return input(fmt.Errorf("run %s is over already", s.id))
	}
	s.halt(errStopped{c.name})
	return c.say(&protos.Reply{Kind: &protos.Reply_Done{Done: &protos.Done{}}})
}

// answerRemove removes a submission that has ended, and its record.
func (p *process) answerRemove(c *caller, id string) error {
	if err := c.may("remove runs", identity.Operator); err != nil {
		return err
	}
	s, err := p.find(id)
	if err != nil {
		return err
	}
	if m, over, _ := s.now(); !over {
		return input(fmt.Errorf("run %s is %s; it can be removed when it has ended", s.id, m.State))
	}
	if err := p.remove(s); err != nil {
		return err
	}
	p.log("%s has removed run %s with its record in %s", c.name, s.id, s.out)
	return c.say(&protos.Reply{Kind: &protos.Reply_Done{Done: &protos.Done{}}})
}

// answerFetch sends the folder of a record as an archive.
func (p *process) answerFetch(c *caller, id string) error {
	s, err := p.find(id)
	if err != nil {
		return err
	}
	if m, over, _ := s.now(); !over {
		return input(fmt.Errorf("run %s is %s; its record can be fetched when it has ended", s.id, m.State))
	}
	out := bufio.NewWriterSize(portions{c}, 256<<10)
	archive := tar.NewWriter(out)
	if err := errors.Join(pack(archive, s.out), archive.Close(), out.Flush()); err != nil {
		return err
	}
	return c.say(&protos.Reply{Kind: &protos.Reply_Done{Done: &protos.Done{}}})
}

// portions sends what is written to it.
type portions struct{ *caller }

func (p portions) Write(b []byte) (int, error) {
	for sent := 0; sent < len(b); {
		n := min(len(b)-sent, 1<<20)
		if err := p.say(&protos.Reply{Kind: &protos.Reply_Portion{Portion: &protos.Portion{Bytes: b[sent : sent+n]}}}); err != nil {
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
