package node

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// checkAddresses checks the addresses of a configuration, by the names of their flags. A process
// that is bound to every address of its machine advertises one of them.
func (c *Config) checkAddresses() error {
	host, port, err := net.SplitHostPort(c.Bind)
	if err != nil {
		return fmt.Errorf("--bind %q; accepted is HOST:PORT, such as 10.0.0.1:7946 or 0.0.0.0:7946", c.Bind)
	}
	if c.Advertise == "" && unspecified(host) {
		ip := ownAddress()
		c.Advertise = net.JoinHostPort(ip.String(), port)
		c.logf("is bound to every address and advertises %s to the others; --advertise HOST:PORT says another", ip)
	} else if c.Advertise != "" {
		if err := checkAddress(c.Advertise, 0); err != nil {
			return fmt.Errorf("--advertise %q; accepted is HOST:PORT, where others reach the node: %w", c.Advertise,
				err)
		}
	}
	for _, seed := range c.Seeds {
		if err := checkAddress(seed, 1); err != nil {
			return fmt.Errorf("--join %q; accepted is HOST:PORT of a node, or several with commas: %w", seed, err)
		}
	}
	return nil
}

// checkAddress returns an error unless an address has a host and a port, of least at least.
func checkAddress(address string, least uint64) error {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if host == "" || unspecified(host) {
		return fmt.Errorf("%q is no host that can be reached", host)
	}
	if port, err := strconv.ParseUint(text, 10, 16); err != nil || port < least {
		return fmt.Errorf("port %q is not from %d to 65535", text, least)
	}
	return nil
}

// unspecified reports whether a host stands for every address of the machine.
func unspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// somewhere is an address for documentation (RFC 5737). To ask for its route sends nothing.
const somewhere = "192.0.2.1:9"

// ownAddress is the address of this machine from which others are reached: that of its default
// route, or else the first that is not loopback's, or else loopback's.
func ownAddress() netip.Addr {
	if conn, err := net.Dial("udp", somewhere); err == nil {
		defer conn.Close() //nolint:errcheck // nothing was sent
		return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	}
	found := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	all, err := net.InterfaceAddrs()
	if err != nil {
		return found
	}
	for _, a := range all {
		text, _, _ := strings.Cut(a.String(), "/")
		if ip, err := netip.ParseAddr(text); err == nil && ip.IsGlobalUnicast() {
			return ip
		}
	}
	return found
}
