package wire

import (
	"net"
	"sync"
)

// A session is a connection of a client and the one to the server that belongs to
// it.
type session struct {
	proxy          *Proxy
	client, server net.Conn
	once           sync.Once
	over           chan struct{} // closed by reset

	mu      sync.Mutex
	asked   int // how often the server has been asked for a ReadyForQuery
	cut     *cut
	cutAt   int // which ReadyForQuery ends the answer that is cut
	writers int // that are not closed
}

func newSession(p *Proxy, client, server net.Conn) *session {
	return &session{proxy: p, client: client, server: server, over: make(chan struct{}), writers: 2}
}

// reset ends the connection at both ends, as a network that lost it does.
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

// finish cuts the connection and counts that.
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
		s.reset() // both sides have been told of the end already
		s.proxy.mu.Lock()
		delete(s.proxy.sessions, s)
		s.proxy.mu.Unlock()
	}
}

// expect notes that the server has been asked for so many ReadyForQuery.
func (s *session) expect(c *cut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if c != nil {
		s.cut, s.cutAt = c, s.asked
	}
}

// cutAfter returns the cut which the answer is for that comes after so many, if
// there is one.
func (s *session) cutAfter(answers int) *cut {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut != nil && answers+1 == s.cutAt {
		return s.cut
	}
	return nil
}

// A source reads what one side sends. While the proxy is stalled it keeps the end
// of that to itself.
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
