package wire

import (
	"bytes"
	"encoding/binary"
)

// The codes with which a client may begin in place of the protocol version.
const (
	cancelRequest = 80877102
	sslRequest    = 80877103
	gssRequest    = 80877104
)

// maxMessage limits a message, in bytes: a longer one is not of the protocol.
const maxMessage = 1 << 30

// A message is a message of the protocol with its header, a type and a length. A client's
// first message has no type.
type message []byte

func (m message) kind() byte { return m[0] }

// body returns the message without its header, plus a zero byte, so that every text is
// terminated.
func (m message) body() []byte { return append(m[5:len(m):len(m)], 0) }

// next takes a message from the front of the received bytes, or returns nil if it is
// incomplete. It reports whether the bytes can be a message.
func next(received *[]byte, typed bool) (m message, ok bool) {
	start := 0
	if typed {
		start = 1
	}
	if len(*received) < start+4 {
		return nil, true
	}
	size := int64(binary.BigEndian.Uint32((*received)[start:]))
	if size < 4 || size > maxMessage || !typed && size < 8 {
		return nil, false
	}
	if int64(len(*received)) < int64(start)+size {
		return nil, true
	}
	m = message((*received)[:start+int(size)])
	*received = (*received)[len(m):]
	return m, true
}

// text takes a text from the front of a message's body.
func text(body []byte) (string, []byte) {
	s, rest, _ := bytes.Cut(body, []byte{0})
	return string(s), rest
}

// A frontend is the end of the link from the client. It passes messages on to the server;
// it holds those of the extended protocol until the one that asks for a reply. It never
// returns an error, because a link that can't write its data never ends.
type frontend struct {
	*session
	received   []byte            // the beginning of a message
	started    bool              // messages have a type
	held       []byte            // messages of the extended protocol
	executed   []string          // statements since the last Sync
	statements map[string]string // prepared ones, by name
	portals    map[string]string // bound ones, by name
	done       bool              // nothing more is passed on
}

func (f *frontend) Write(b []byte) (int, error) {
	if f.done || f.isOver() {
		return len(b), nil
	}
	f.received = append(f.received, b...)
	for !f.done {
		m, ok := next(&f.received, f.started)
		switch {
		case !ok:
			f.done = true
			f.reset()
		case m == nil:
			return len(b), nil
		case f.started:
			f.handle(m)
		default:
			f.begin(m)
		}
	}
	return len(b), nil
}

// Close tells the server that the client is gone.
func (f *frontend) Close() error {
	defer f.leave()
	return f.server.Close()
}

// begin handles a message that has no type.
func (f *frontend) begin(m message) {
	switch binary.BigEndian.Uint32(m[4:]) {
	case sslRequest, gssRequest:
		_, _ = f.client.Write([]byte("N")) // nothing else is on its way to the client
		return
	case cancelRequest:
	default:
		f.started = true
		f.expect(nil)
	}
	f.pass(m)
}

// handle passes a message on, or decides not to.
func (f *frontend) handle(m message) {
	f.held = append(f.held, m...)
	f.track(m)
	switch m.kind() {
	case 'P', 'B', 'D', 'E', 'C': // the server needn't reply yet
		return
	case 'Q', 'S', 'F': // Query, Sync, FunctionCall: one ReadyForQuery each
		c := f.proxy.take(f.executed)
		f.executed = nil
		if c != nil && c.position == Before {
			f.done = true
			f.finish()
			return
		}
		f.expect(c)
		f.done = c != nil
	}
	f.pass(f.held)
	f.held = f.held[:0]
}

// track remembers the statement that each name stands for, and the statements that are
// executed.
func (f *frontend) track(m message) {
	switch m.kind() {
	case 'P': // Parse
		name, rest := text(m.body())
		sql, _ := text(rest)
		put(&f.statements, name, sql)
	case 'B': // Bind
		name, rest := text(m.body())
		statement, _ := text(rest)
		put(&f.portals, name, f.statements[statement])
	case 'E': // Execute
		name, _ := text(m.body())
		f.executed = append(f.executed, f.portals[name])
	case 'Q': // Query
		sql, _ := text(m.body())
		f.executed = append(f.executed, sql)
	}
}

func put(m *map[string]string, name, sql string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[name] = sql
}

func (f *frontend) pass(b []byte) {
	if _, err := f.server.Write(b); err != nil {
		f.done = true // the other link learns why
	}
}

// A backend is the end of the link from the server. It passes messages on to the client.
// It never returns an error, because a link that can't write its data never ends.
type backend struct {
	*session
	received []byte // the beginning of a message
	withheld []byte // of a reply
	answers  int    // how often ReadyForQuery was seen
	done     bool   // nothing more is passed on
}

func (b *backend) Write(data []byte) (int, error) {
	if b.done || b.isOver() {
		return len(data), nil
	}
	b.received = append(b.received, data...)
	var ready []byte // to be passed on
	for !b.done {
		m, ok := next(&b.received, true)
		if !ok {
			b.done = true
			b.reset()
			return len(data), nil
		}
		if m == nil {
			break
		}
		if c := b.cutAfter(b.answers); c != nil {
			b.withhold(m, c, ready)
			continue
		}
		if ready = append(ready, m...); m.kind() == 'Z' { // ReadyForQuery
			b.answers++
		}
	}
	if !b.done {
		b.pass(ready)
	}
	return len(data), nil
}

// withhold keeps a message of a reply that is cut. When the reply is complete, it cuts,
// after it has passed on the messages before that reply.
func (b *backend) withhold(m message, c *cut, ready []byte) {
	b.withheld = append(b.withheld, m...)
	if m.kind() != 'Z' {
		return
	}
	b.done = true
	if c.position == During {
		ready = append(ready, b.withheld[:len(b.withheld)/2]...)
	}
	b.pass(ready)
	b.finish()
}

func (b *backend) pass(data []byte) {
	if len(data) == 0 {
		return
	}
	if _, err := b.client.Write(data); err != nil {
		b.done = true // the other link learns why
	}
}

// Close tells the client that the server is gone.
func (b *backend) Close() error {
	defer b.leave()
	return b.client.Close()
}
