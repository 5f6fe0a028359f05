package identity

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
)

// ServerTLS returns the configuration of a process that is called, for the given
// protocols. Both sides must hold a certificate of the cluster's authority; callers of
// [Clients] may have any role, callers of other protocols must be nodes. Callers that name
// no protocol are refused.
func (id *Identity) ServerTLS(protocols ...string) *tls.Config {
	c := id.base(protocols)
	c.ClientAuth = tls.RequireAndVerifyClientCert
	c.ClientCAs = id.authority
	c.VerifyConnection = func(state tls.ConnectionState) error { return admit(state, protocols, false) }
	return c
}

// ClientTLS returns the configuration of a process that calls another, for the given protocols. The
// other side must hold a node's certificate of the cluster's authority; Peer tells which node it
// is. The address that was called plays no part.
func (id *Identity) ClientTLS(protocols ...string) *tls.Config {
	c := id.base(protocols)
	c.RootCAs = id.authority
	c.ServerName = host
	c.VerifyConnection = func(state tls.ConnectionState) error { return admit(state, protocols, true) }
	return c
}

func (id *Identity) base(protocols []string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, MaxVersion: tls.VersionTLS13,
		Certificates: []tls.Certificate{id.certificate},
		NextProtos:   slices.Clone(protocols),
		// Connections are few and long: nothing is resumed, and records are as large as can be.
		SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true,
	}
}

// admit checks the role of the other side, once its certificate has been verified.
func admit(state tls.ConnectionState, protocols []string, server bool) error {
	if !slices.Contains(protocols, state.NegotiatedProtocol) {
		return fmt.Errorf("identity: the other side speaks protocol %.40q, accepted are %q", state.NegotiatedProtocol,
			protocols)
	}
	s, err := peer(state)
	if err != nil {
		return err
	}
	if s.Role != Node && (server || state.NegotiatedProtocol != Clients) {
		return fmt.Errorf("identity: %s has role %s, %s wants role %s: %w", s.Name, s.Role, state.NegotiatedProtocol,
			Node, ErrRole)
	}
	return nil
}

// Peer is the name and the role of the other side of a connection.
func Peer(state tls.ConnectionState) (name string, role Role, err error) {
	s, err := peer(state)
	return s.Name, s.Role, err
}

func peer(state tls.ConnectionState) (Subject, error) {
	if len(state.PeerCertificates) == 0 || len(state.VerifiedChains) == 0 {
		return Subject{}, errors.New("identity: the other side has shown no certificate that was verified")
	}
	return subjectOf(state.PeerCertificates[0])
}
