//go:build unix

package identity

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Renewals gives the identity in a folder again with every SIGHUP, if it can be read.
func Renewals(ctx context.Context, dir string, log func(line string)) <-chan *Identity {
	hangup, renewed := make(chan os.Signal, 1), make(chan *Identity)
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-hangup:
			case <-ctx.Done():
				return
			}
			id, err := Load(dir)
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
