package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
)

// maxUp is how many nodes gradwire up starts at most.
const maxUp = 64

// mostSeeds is how many addresses it prints for other commands.
const mostSeeds = 3

func upCommand(con *console) *cobra.Command {
	count, verbose, cluster := 4, false, &throwaway{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a throw-away cluster on this machine",
		Long: `Start nodes as processes of this machine, with their own certificates, ready to submit to.
Ctrl-C ends them, and nothing of them is left; what was not fetched is lost.`,
		Example: "  gradwire up --nodes 4",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if count < 1 || count > maxUp {
				return usage(cmd, fmt.Errorf("--nodes %d; accepted are 1 to %d", count, maxUp))
			}
			log := io.Discard
			if verbose {
				log = con.errs
			}
			if err := driver.CheckNodeTimeout(cluster.timeout); err != nil {
				return usage(cmd, err)
			}
			con.leaves.Store(true)
			cluster.log = log
			return cluster.up(cmd.Context(), cmd.Root().Name(), count, con)
		},
	}
	cmd.Flags().IntVar(&count, "nodes", count, "how many")
	cmd.Flags().StringVar(&cluster.data, "data", "", folderUsage)
	cmd.Flags().DurationVar(&cluster.timeout, "node-timeout", driver.DefaultNodeTimeout, timeoutUsage)
	cmd.Flags().BoolVar(&verbose, "verbose", false, "show what the nodes say")
	return cmd
}

// throwaway holds the settings of the nodes of a cluster that lasts as long as its command.
type throwaway struct {
	data    string
	timeout time.Duration
	log     io.Writer
}

// child is a node that was started.
type child struct {
	*exec.Cmd
	name    string
	leash   io.Closer
	address chan string   // its, when it is part of the cluster
	last    string        // line that it has said
	ended   chan struct{} // closed when the process has ended, with err
	err     error
}

// up starts a cluster, says how the program of that name reaches it, and keeps it until ctx is
// cancelled or all nodes have ended.
func (t *throwaway) up(ctx context.Context, program string, count int, con *console) (err error) {
	dir, err := os.MkdirTemp("", "gradwire-up-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := issueAll(dir, count); err != nil {
		return err
	}
	var children []*child
	defer func() { err = errors.Join(err, end(children)) }()
	seed := ""
	for i := range count {
		c, err := t.child(dir, nodeName(i), seed)
		if err != nil {
			return err
		}
		children = append(children, c)
		if seed == "" {
			if seed, err = c.ready(ctx); err != nil {
				return err
			}
		}
	}
	join := []string{seed} // several, since any may be stopped
	for _, c := range children[1:] {
		address, err := c.ready(ctx)
		if err != nil {
			return err
		}
		if len(join) < mostSeeds {
			join = append(join, address)
		}
	}
	operator := filepath.Join(dir, operatorName)
	err = con.say(facts{"nodes": count, "join": strings.Join(join, ","), "identity": operator},
		"%d nodes are up; in another terminal:\n\n"+
			"  export GRADWIRE_JOIN=%s GRADWIRE_IDENTITY=%s\n  %s submit PLAN\n\nCtrl-C ends them.\n",
		count, strings.Join(join, ","), operator, program)
	if err != nil {
		return err
	}
	return anyEnds(ctx, children)
}

// operatorName names the operator of a cluster that gradwire up starts.
const operatorName = "operator"

// issueAll makes the identities of an operator and of count nodes, each in the folder of its name.
// The authority's key is removed at once: nobody needs it, and a killed process leaves its folder.
func issueAll(dir string, count int) error {
	ca := filepath.Join(dir, "ca")
	if err := identity.Init(ca); err != nil {
		return err
	}
	subjects := []identity.Subject{{Name: operatorName, Role: identity.Operator}}
	for i := range count {
		subjects = append(subjects, identity.Subject{Name: nodeName(i), Role: identity.Node})
	}
	for _, s := range subjects {
		if err := identity.Issue(ca, filepath.Join(dir, s.Name), s); err != nil {
			return err
		}
	}
	return os.RemoveAll(ca)
}

// nodeName names a node that gradwire up starts.
func nodeName(i int) string { return fmt.Sprintf("n%d", i+1) }

// anyEnds waits until ctx is cancelled, or a node has ended, which is an error.
func anyEnds(ctx context.Context, children []*child) error {
	first := make(chan *child, len(children))
	for _, c := range children {
		go func() {
			<-c.ended
			first <- c
		}()
	}
	for left := len(children); left > 0; left-- {
		select {
		case <-ctx.Done():
			return nil
		case c := <-first:
			if ctx.Err() != nil {
				return nil
			}
			fmt.Fprintf(os.Stderr, "node %s has ended: %v\n", c.name, c.err)
		}
	}
	return errors.New("all nodes have ended")
}

// child starts a node with the identity issued for it.
func (t *throwaway) child(dir, name, seed string) (*child, error) {
	own := filepath.Join(dir, name)
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{
		"node", "--leash", "--bind", "127.0.0.1:0", "--identity", own, "--out", filepath.Join(dir, "records-"+name),
		"--node-timeout", t.timeout.String(),
	}
	if seed != "" {
		args = append(args, "--join", seed)
	}
	if t.data != "" {
		args = append(args, "--data", t.data)
	}
	c := &child{
		Cmd:  exec.Command(program, args...), //nolint:gosec // this program itself
		name: name, address: make(chan string, 1), ended: make(chan struct{}),
	}
	c.Env = append(os.Environ(), "GRADWIRE_JOIN=", "GRADWIRE_IDENTITY=")
	c.Stdout, c.Stderr = &lines{each: c.says}, &lines{each: func(line string) {
		c.last = line
		fmt.Fprintf(t.log, "%s: %s\n", name, line)
	}}
	if c.leash, err = c.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	go func() {
		c.err = c.Wait()
		close(c.ended)
	}()
	return c, nil
}

// says takes note of the line with the node's address.
func (c *child) says(line string) {
	if address, ok := strings.CutPrefix(line, readyLine); ok {
		select {
		case c.address <- address:
		default:
		}
	}
}

// ready waits until the node is part of the cluster, and returns its address.
func (c *child) ready(ctx context.Context) (string, error) {
	select {
	case address := <-c.address:
		return address, nil
	case <-c.ended:
		return "", fmt.Errorf("node %s has ended: %w: %s", c.name, c.err, c.last)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// endPatience is how long nodes may take their leave.
const endPatience = 10 * time.Second

// end lets all children take their leave, and kills those that do not.
func end(children []*child) error {
	for _, c := range children {
		c.leash.Close() //nolint:errcheck // who does not notice is killed
	}
	patience := time.NewTimer(endPatience)
	defer patience.Stop()
	var errs []error
	for _, c := range children {
		select {
		case <-c.ended:
			continue
		case <-patience.C:
			patience.Reset(0)
		}
		if err := c.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, err)
		}
		<-c.ended
	}
	return errors.Join(errs...)
}

// lines cuts what is written to it into lines.
type lines struct {
	each func(line string)
	part []byte
}

// maxLine is the longest line that is kept.
const maxLine = 64 << 10

func (l *lines) Write(b []byte) (int, error) {
	l.part = append(l.part, b...)
	for {
		i := bytes.IndexByte(l.part, '\n')
		if i < 0 {
			break
		}
		l.each(string(l.part[:i]))
		l.part = l.part[i+1:]
	}
	if len(l.part) > maxLine {
		l.part = l.part[:0]
	}
	return len(b), nil
}
