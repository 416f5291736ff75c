package wire

import (
	"net"
	"sync"
)

// A session is a client's connection and the matching connection to the server.
type session struct {
	proxy          *Proxy
	client, server net.Conn
	once           sync.Once
	over           chan struct{} // closed by reset

	mu      sync.Mutex
	asked   int // how often the server has been asked for a ReadyForQuery
	cut     *cut
	cutAt   int // the number of the ReadyForQuery that ends the cut reply
	writers int // that are not closed
}

func newSession(p *Proxy, client, server net.Conn) *session {
	return &session{proxy: p, client: client, server: server, over: make(chan struct{}), writers: 2}
}

// reset ends the connection at both ends, like a network that lost it.
func (s *session) reset() {
	s.once.Do(func() {
		for _, conn := range []net.Conn{s.client, s.server} {
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // where it fails, the other end has closed it
			}
			_ = conn.Close()
		}
		close(s.over)
	})
}

// finish cuts the connection and counts the cut.
func (s *session) finish() {
	s.proxy.cuts.Add(1)
	s.reset()
}

// isOver reports whether the session was reset.
func (s *session) isOver() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// leave is called by each of the writers when it is closed.
func (s *session) leave() {
	s.mu.Lock()
	s.writers--
	last := s.writers == 0
	s.mu.Unlock()
	if last {
		s.reset() // both sides know of the end already
		s.proxy.mu.Lock()
		delete(s.proxy.sessions, s)
		s.proxy.mu.Unlock()
	}
}

// expect counts a ReadyForQuery that the server was asked for. A cut c ends the
// connection there.
func (s *session) expect(c *cut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if c != nil {
		s.cut, s.cutAt = c, s.asked
	}
}

// cutAfter returns the cut of the reply that follows so many others, or nil.
func (s *session) cutAfter(answers int) *cut {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut != nil && answers+1 == s.cutAt {
		return s.cut
	}
	return nil
}

// A source reads what one side sends. While the proxy is stalled, the source doesn't
// report the end of its data.
type source struct {
	conn    net.Conn
	session *session
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.conn.Read(b)
	if err != nil && s.session.proxy.stalled.Load() {
		<-s.session.over
	}
	return n, err
}
