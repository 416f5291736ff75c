package delivery_test

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// A pipeNet is a server and a transport without a network between them, so they work in simulated
// time.
type pipeNet struct {
	transport *http.Transport
	server    *http.Server
	conns     chan net.Conn
	closed    chan struct{}
	once      sync.Once
	ended     chan error
}

func newPipeNet(handler http.Handler) *pipeNet {
	p := &pipeNet{
		server: &http.Server{Handler: handler}, conns: make(chan net.Conn),
		closed: make(chan struct{}), ended: make(chan error, 1),
	}
	p.transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		client, server := net.Pipe()
		select {
		case p.conns <- server:
			return client, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	go func() { p.ended <- p.server.Serve(p) }()
	return p
}

func (p *pipeNet) close() {
	p.transport.CloseIdleConnections()
	_ = p.server.Close()
	<-p.ended //nolint:errcheck // always ErrServerClosed
}

func (p *pipeNet) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeNet) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipeNet) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
