package membership

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"
)

// childNode is a node of a process of its own, where no test is running.
type childNode struct {
	members  *Members
	listener net.Listener
	conns    chan net.Conn
}

func (n *childNode) start(name string) error {
	var err error
	if n.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	n.conns = make(chan net.Conn)
	go func() {
		for {
			c, err := n.listener.Accept()
			if err != nil {
				return
			}
			n.conns <- c
		}
	}()
	address := n.listener.Addr().String()
	var seeds []string
	if s := os.Getenv(childSeed); s != "" {
		seeds = []string{s}
	}
	if _, err := fmt.Println(address); err != nil {
		return err
	}
	n.members, err = Join(context.Background(), Config{
		Name: name, Bind: address, Seeds: seeds, Key: testKey, Label: "test",
		Meta: Meta{Incarnation: uint64(time.Now().UnixNano()), Cores: 1}, Streams: n,
		Notify: func(e Event) {
			fmt.Printf("%s %s@%d\n", e.Kind, e.Member.Name, time.Now().UnixNano())
		},
	})
	return err
}

func (n *childNode) end() {
	if n.members != nil {
		_ = n.members.Shutdown()
	}
	_ = n.listener.Close()
}

func (n *childNode) Conns() <-chan net.Conn { return n.conns }

func (n *childNode) Dial(address string, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", address, timeout)
}
