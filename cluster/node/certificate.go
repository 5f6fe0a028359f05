package node

import (
	"fmt"
	"time"

	"github.com/gradwire/gradwire/cluster/identity"
)

const (
	// lookEvery is how often a process looks at its certificate: clocks are set, and machines
	// sleep.
	lookEvery = time.Minute
	// warnEvery is how often it warns that the certificate expires soon.
	warnEvery = 24 * time.Hour
)

// expires is when the process's certificate does, in s since 1970; 0 without one.
func (p *process) expires() int64 {
	if id := p.identity.Load(); id != nil {
		return id.Expires().Unix()
	}
	return 0
}

// watchIdentity warns before the process's certificate expires, takes new ones, and has the process
// leave when it has expired: others refuse its next connection, but would keep those that there
// are.
func (p *process) watchIdentity() {
	if p.config.Identity == nil {
		return
	}
	var warned time.Time
	for {
		id := p.identity.Load()
		left := time.Until(id.Expires())
		if left <= 0 {
			p.expired <- fmt.Errorf("node %s leaves the cluster: its certificate expired at %s; "+
				"issue a new one with: gradwire identity issue AUTHORITY --node %[1]s: %[3]w",
				id.Name(), id.Expires().UTC().Format(time.RFC3339), identity.ErrExpired)
			return
		}
		if left <= identity.Soon && time.Since(warned) >= warnEvery {
			warned = time.Now()
			p.log("the certificate of node %s expires at %s, in %v; then the process leaves: issue a new one and "+
				"send SIGHUP",
				id.Name(), id.Expires().UTC().Format(time.RFC3339), left.Round(time.Second))
		}
		select {
		case <-time.After(min(left, lookEvery)):
		case next := <-p.config.Renew:
			if err := p.renew(id, next); err != nil {
				p.log("the new identity is not taken: %v", err)
			} else {
				warned = time.Time{}
			}
		case <-p.stop.Done():
			return
		}
	}
}

// renew takes a new identity in place of the one before.
func (p *process) renew(before, next *identity.Identity) error {
	if err := next.Succeeds(before); err != nil {
		return err
	}
	if err := p.node.Renew(next); err != nil {
		return err
	}
	p.identity.Store(next)
	p.directory.restate()
	p.log("the new certificate holds until %s", next.Expires().UTC().Format(time.RFC3339))
	return nil
}
