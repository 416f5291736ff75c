package egress

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// ownFor is how long the addresses of this machine are remembered.
const ownFor = 10 * time.Second

// own knows the addresses of this machine's interfaces. It is safe for concurrent use.
type own struct {
	list func() ([]net.Addr, error)

	mu    sync.Mutex
	addrs map[netip.Addr]bool
	until time.Time
}

// has reports whether an interface of this machine has the address. If the system doesn't list its
// interfaces, it uses the last list.
func (o *own) has(ip netip.Addr) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); now.After(o.until) {
		o.until = now.Add(ownFor)
		if list, err := o.list(); err == nil {
			o.addrs = make(map[netip.Addr]bool, len(list))
			for _, a := range list {
				if prefix, err := netip.ParsePrefix(a.String()); err == nil {
					o.addrs[prefix.Addr().Unmap().WithZone("")] = true
				}
			}
		}
	}
	return o.addrs[ip.WithZone("")]
}
