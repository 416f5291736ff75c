package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net/netip"
	"sync"

	"golang.org/x/sync/semaphore"
)

const (
	handshakesAtOnce = 8     // of an address
	handshakesInAll  = 1_000 // of an address, with those that wait; more fail
)

// handshakes limits the TLS handshakes that an address, or one /64 network of IPv6, has in progress, so that one client never
// delays those of others. More wait in turn.
type handshakes struct {
	mu sync.Mutex
	of map[netip.Prefix]*turns
}

// turns are those of an address.
type turns struct {
	slots *semaphore.Weighted
	users int // in progress or waiting
}

// admit is a tls.Config.GetConfigForClient: it runs before the costly part of a handshake.
func (h *handshakes) admit(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	from := peer(hello.Conn.RemoteAddr().String())
	h.mu.Lock()
	t := h.of[from]
	if t == nil {
		t = &turns{slots: semaphore.NewWeighted(handshakesAtOnce)}
		h.of[from] = t
	}
	if t.users == handshakesInAll {
		h.mu.Unlock()
		return nil, errors.New("too many handshakes of this address")
	}
	t.users++
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(hello.Context(), readHeaderTimeout) // ends with the handshake
	err := t.slots.Acquire(ctx, 1)
	context.AfterFunc(hello.Context(), func() {
		cancel()
		if err == nil {
			t.slots.Release(1)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(h.of, from)
		}
	})
	return nil, err
}

// peer returns the addresses that count as one client.
func peer(remote string) netip.Prefix {
	a, _ := netip.ParseAddrPort(remote)
	addr := a.Addr().Unmap().WithZone("")
	p, _ := addr.Prefix(min(addr.BitLen(), 64))
	return p
}
