package main

import (
	"crypto/tls"
	"net"
	"net/http/httptest"
	"net/netip"
	"testing"
)

// A client with stalled handshakes delays its own next one, and never that of another address.
func TestHandshakesOfOneAddress(t *testing.T) {
	t.Parallel()
	limit := &handshakes{of: make(map[netip.Prefix]*turns)}
	server := httptest.NewUnstartedServer(nil)
	server.TLS = &tls.Config{GetConfigForClient: limit.admit}
	server.StartTLS()
	defer server.Close()
	shake := func(from string, during func()) chan error {
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Skipf("SKIPPED: this system has no address %s: %v", from, err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		done := make(chan error, 1)
		go func() {
			done <- tls.Client(conn, &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(tls.ConnectionState) error {
				during()
				return nil
			}}).HandshakeContext(t.Context())
		}()
		return done
	}
	stalled, release := make(chan bool), make(chan bool)
	var all []chan error
	for range handshakesAtOnce {
		all = append(all, shake("127.0.0.1", func() { stalled <- true; <-release }))
	}
	for range handshakesAtOnce {
		<-stalled
	}
	late := shake("127.0.0.1", func() {
		select {
		case <-release:
		default:
			t.Error("one more handshake began")
		}
	})
	noError(t, <-shake("127.0.0.2", func() {}))
	close(release)
	for _, done := range append(all, late) {
		noError(t, <-done)
	}
}

func TestPeer(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1/32", "[::ffff:192.0.2.1]:80": "192.0.2.1/32", "[2001:db8::1:2]:80": "2001:db8::/64", "[fe80::1%eth0]:80": "fe80::/64",
	} {
		equal(t, peer(remote).String(), want, "%s: %s", remote)
	}
}
