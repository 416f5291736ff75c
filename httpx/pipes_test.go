package httpx_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
)

// A pipes is a listener whose connections stay in the process. With it a server can run in a bubble of
// testing/synctest, where time passes only while all goroutines wait: no deadline is missed because the machine is
// busy.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// overPipes makes a server listen on pipes. Call it before the server is started.
func overPipes(server *httptest.Server) *pipes {
	_ = server.Listener.Close()
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server.Listener = p
	return p
}

// use makes the client of a started server connect through the pipes.
func (p *pipes) use(server *httptest.Server) *http.Transport {
	transport := server.Client().Transport.(*http.Transport)
	transport.DialContext = p.dial
	return transport
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	server, client := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
