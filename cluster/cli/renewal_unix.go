//go:build unix

package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/gradwire/gradwire/cluster/identity"
)

// renewals gives the identity in a folder again with every SIGHUP, if it can be read.
func renewals(ctx context.Context, dir string, log func(line string)) <-chan *identity.Identity {
	hangup, renewed := make(chan os.Signal, 1), make(chan *identity.Identity)
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-hangup:
			case <-ctx.Done():
				return
			}
			id, err := identity.Load(dir)
			if err != nil {
				log(fmt.Sprintf("cannot reload the identity: %v", err))
				continue
			}
			select {
			case renewed <- id:
			case <-ctx.Done():
				return
			}
		}
	}()
	return renewed
}
