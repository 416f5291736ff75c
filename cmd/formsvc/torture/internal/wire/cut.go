package wire

import "strings"

// A Position says where a connection is cut.
type Position int

const (
	// Before withholds the commit, and everything that the client sent with it, from the
	// server, and resets the connection at both ends: nothing is committed.
	Before Position = iota
	// After passes the commit on, waits for the whole reply, withholds it, and resets the
	// connection. The transaction is committed unless the reply was an error, and the
	// client can't know.
	After
	// During is After, but half of the reply's bytes reach the client. In a reply without
	// notices and with few rows, these end before the server reports success.
	During
)

// A cut waits for a statement.
type cut struct {
	position Position
	match    func(sql string) bool
}

// Arm cuts the next connection that executes a statement for which match returns true;
// then the cut is disarmed. It replaces an armed cut.
//
// A statement outside of a transaction commits by itself; otherwise [Commit] matches the
// statement that commits. match gets the text that the client sent: of a prepared
// statement the prepared text, of a simple query all its statements together. The proxy's
// goroutines call it, one at a time; it must not block or call the proxy.
func (p *Proxy) Arm(position Position, match func(sql string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = &cut{position, match}
}

// Disarm takes back a cut and reports whether it was still armed, so that nothing
// matched.
func (p *Proxy) Disarm() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	armed := p.armed != nil
	p.armed = nil
	return armed
}

// Armed reports whether a cut waits for a match.
func (p *Proxy) Armed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.armed != nil
}

// Cuts returns the number of connections that Arm has cut. It counts a cut before the
// client learns of it. It doesn't count a cut that matched if the client or the server
// ends the connection before there is a reply to withhold.
func (p *Proxy) Cuts() int { return int(p.cuts.Load()) }

// Commit matches the end of a transaction, also as the last of several statements.
func Commit(sql string) bool {
	sql = strings.TrimRight(sql, "; ")
	last := sql[strings.LastIndexByte(sql, ';')+1:]
	return strings.EqualFold(strings.TrimSpace(last), "commit")
}

// Containing matches statements with a text in them.
func Containing(text string) func(sql string) bool {
	return func(sql string) bool { return strings.Contains(sql, text) }
}

// take returns the armed cut if it matches one of the statements, and disarms it.
func (p *Proxy) take(statements []string) *cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.armed == nil {
		return nil
	}
	for _, sql := range statements {
		if c := p.armed; c.match(sql) {
			p.armed = nil
			return c
		}
	}
	return nil
}
