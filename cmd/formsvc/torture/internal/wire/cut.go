package wire

import "strings"

// A Position is where a connection is cut.
type Position int

const (
	// Before withholds from the server what would commit, and all that the client
	// sent along with it, and resets the connection at both ends: nothing is
	// committed.
	Before Position = iota
	// After passes it on, waits for the whole answer, withholds all of it, and
	// resets the connection: it is committed, unless the answer was an error, and
	// the client can't know.
	After
	// During is After, but half of the bytes of the answer reach the client. In
	// an answer without notices and with few rows these end before the server says
	// that the statement succeeded.
	During
)

// A cut waits for a statement.
type cut struct {
	position Position
	match    func(sql string) bool
}

// Arm cuts the next connection on which a statement is executed that match
// approves of, on whichever connection that is; then the cut is no longer armed.
// It replaces a cut that is armed. A statement outside of a transaction commits by
// itself; otherwise what commits is the statement [Commit] matches. match gets the
// text as the client sent it: of a prepared statement what was prepared, of a
// simple query all its statements together. It is called by goroutines of the
// proxy, one at a time; it must not block, and not call the proxy.
func (p *Proxy) Arm(position Position, match func(sql string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = &cut{position, match}
}

// Disarm takes back a cut and reports whether it was still armed, which is to say
// that nothing has matched.
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

// Cuts returns how many connections were cut as Arm says. A client that learns of
// a cut finds it counted. A cut that matched is not counted when the client or the
// server gives up before there is an answer to withhold.
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

// take returns the cut that is armed if one of the statements matches, and
// disarms it.
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
