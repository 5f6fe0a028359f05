package membership

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// The test's own program is the process of a node where this is its name.
const (
	childName        = "MEMBERSHIP_TEST_NAME"
	childBind        = "MEMBERSHIP_TEST_BIND"
	childSeed        = "MEMBERSHIP_TEST_SEED"
	childIncarnation = "MEMBERSHIP_TEST_INCARNATION"
	childBusy        = "MEMBERSHIP_TEST_BUSY"
	childPace        = "MEMBERSHIP_TEST_PACE"
)

// childNode is the node of a child process, in which no test runs.
type childNode struct {
	members  *Members
	listener net.Listener
	conns    chan net.Conn
}

// child writes its address and then its events. For each line of its input it writes how many nodes
// it sees, and it lives until that ends.
func child(name string) int {
	var n childNode
	defer n.end()
	if err := n.start(name); err != nil {
		fmt.Fprintln(os.Stderr, name, err)
		return 1
	}
	busy, _ := strconv.Atoi(os.Getenv(childBusy)) // none where it is not set
	for range busy {
		go func() {
			for x := 1.0; x > 0; x = x*1.0000001 + 1 {
				if x > 1e300 {
					x = 1
				}
			}
		}()
	}
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		fmt.Println("sees", len(n.members.View().Members))
	}
	return 0
}

func (n *childNode) start(name string) error {
	var err error
	if n.listener, err = net.Listen("tcp", os.Getenv(childBind)); err != nil {
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
	fmt.Println(address)
	var seeds []string
	if s := os.Getenv(childSeed); s != "" {
		seeds = []string{s}
	}
	incarnation, err := strconv.ParseUint(os.Getenv(childIncarnation), 10, 64)
	if err != nil {
		return err
	}
	pace, err := strconv.Atoi(os.Getenv(childPace))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patienceOfTests)
	defer cancel()
	n.members, err = Join(ctx, Config{
		Name: name, Bind: address, Seeds: seeds, Key: testKey, Label: "test", pace: time.Duration(pace),
		Meta: Meta{Incarnation: incarnation, Cores: 1}, Streams: n,
		Notify: func(e Event) {
			fmt.Printf("%s %s %d@%d\n", e.Kind, e.Member.Name, e.Member.Meta.Incarnation, time.Now().UnixNano())
		},
	})
	return err
}

func (n *childNode) end() {
	if n.members != nil {
		_ = n.members.Shutdown()
	}
	if n.listener != nil {
		_ = n.listener.Close()
	}
}

func (n *childNode) Conns() <-chan net.Conn { return n.conns }

func (n *childNode) Dial(address string, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", address, timeout)
}
