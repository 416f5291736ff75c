package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/wire"
)

type encoder interface {
	Encode(b []byte) ([]byte, error)
}

func encode(t testing.TB, messages ...encoder) (b []byte) {
	t.Helper()
	for _, m := range messages {
		var err error
		if b, err = m.Encode(b); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// player is a server that sends given bytes after it has received a given number of
// bytes.
type player struct {
	addr  string
	cues  []cue
	mu    sync.Mutex
	heard []byte
	ended chan struct{} // closed when the connection is
}

type cue struct {
	after int
	say   []byte
}

func play(t testing.TB, cues []cue) *player {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &player{addr: listener.Addr().String(), cues: cues, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		p.serve(conn)
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-p.ended
	})
	return p
}

func (p *player) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for b := make([]byte, 1000); ; {
		n, err := conn.Read(b)
		p.mu.Lock()
		p.heard = append(p.heard, b[:n]...)
		heard := len(p.heard)
		p.mu.Unlock()
		for len(p.cues) > 0 && heard >= p.cues[0].after {
			if _, err := conn.Write(p.cues[0].say); err != nil {
				return
			}
			p.cues = p.cues[1:]
		}
		if err != nil {
			return
		}
	}
}

// TestCutKeepsExactBytes sends three transactions without waiting, in pieces of several
// sizes, and cuts the second: both sides receive exactly the bytes that belong to the
// position.
func TestCutKeepsExactBytes(t *testing.T) {
	t.Parallel()
	startup := encode(t, &pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersionNumber, Parameters: map[string]string{"user": "a"}})
	first := encode(t,
		&pgproto3.Parse{Name: "s1", Query: "first"}, &pgproto3.Parse{Name: "s2", Query: "second"},
		&pgproto3.Bind{DestinationPortal: "p", PreparedStatement: "s1"}, &pgproto3.Describe{ObjectType: 'P', Name: "p"},
		&pgproto3.Execute{Portal: "p"}, &pgproto3.Sync{})
	second := encode(t, &pgproto3.Bind{DestinationPortal: "p", PreparedStatement: "s2"}, &pgproto3.Execute{Portal: "p"}, &pgproto3.Sync{})
	third := encode(t, &pgproto3.Query{String: "third"})
	welcome := encode(t, &pgproto3.AuthenticationOk{}, &pgproto3.ReadyForQuery{TxStatus: 'I'})
	answer1 := encode(t, &pgproto3.CommandComplete{CommandTag: []byte("FIRST")}, &pgproto3.ReadyForQuery{TxStatus: 'I'})
	answer2 := encode(t, &pgproto3.BindComplete{}, &pgproto3.CommandComplete{CommandTag: []byte("SECOND")}, &pgproto3.ReadyForQuery{TxStatus: 'I'})

	for _, c := range []struct {
		position       wire.Position
		server, client []byte
	}{
		{wire.Before, join(startup, first), join(welcome, answer1)},
		{wire.After, join(startup, first, second), join(welcome, answer1)},
		{wire.During, join(startup, first, second), join(welcome, answer1, answer2[:len(answer2)/2])},
	} {
		for _, piece := range []int{1, 7, 64, 1000} {
			t.Run(fmt.Sprintf("%d in pieces of %d", c.position, piece), func(t *testing.T) {
				t.Parallel()
				server := play(t, []cue{
					{len(startup), welcome}, {len(startup) + len(first), answer1}, {len(startup) + len(first) + len(second), answer2},
				})
				proxy := wire.New(t, server.addr)
				proxy.Arm(c.position, func(sql string) bool { return sql == "second" })
				got, err := converse(t, proxy.Addr(), len(welcome), startup, join(first, second, third), piece)
				if !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("the client's connection ended with %v, want a reset", err)
				}
				if c.position == wire.Before && len(got) < len(c.client) && bytes.HasPrefix(c.client, got) {
					got = c.client // the reset overtakes the reply to the first
				}
				if !bytes.Equal(got, c.client) {
					t.Errorf("the client received %q, want %q", got, c.client)
				}
				<-server.ended
				if !bytes.Equal(server.heard, c.server) {
					t.Errorf("the server received %q, want %q", server.heard, c.server)
				}
				if proxy.Cuts() != 1 {
					t.Errorf("%d cuts", proxy.Cuts())
				}
			})
		}
	}
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// converse asks for encryption, which is refused, begins, and sends the rest in pieces.
// It returns the bytes that came back until the end, and how the connection ended. The
// system reports a reset once: either to the reader or to the writer.
func converse(t testing.TB, addr string, welcome int, startup, rest []byte, piece int) ([]byte, error) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(encode(t, &pgproto3.SSLRequest{})); err != nil {
		t.Fatal(err)
	}
	refused := make([]byte, 1)
	if _, err := io.ReadFull(conn, refused); err != nil || refused[0] != 'N' {
		t.Fatalf("encryption: %q, %v", refused, err)
	}
	if _, err := conn.Write(startup); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, welcome)
	if _, err := io.ReadFull(conn, got); err != nil {
		t.Fatal(err)
	}
	written := make(chan error)
	go func() {
		for len(rest) > 0 {
			n, err := conn.Write(rest[:min(piece, len(rest))])
			if err != nil {
				written <- err
				return
			}
			rest = rest[n:]
		}
		written <- nil
	}()
	after, err := io.ReadAll(conn)
	return append(got, after...), errors.Join(err, <-written)
}

// TestInvalidMessageCutsConnection sends bytes that are no message: the proxy ends the
// connection and the test goes on.
func TestInvalidMessageCutsConnection(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]string{
		"too short": "\x00\x00\x00\x03\x00\x00\x00\x00", "too long": "GET / HTTP/1.0\r\n\r\n", "no version": "\x00\x00\x00\x07\x00\x00\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := play(t, nil)
			proxy := wire.New(t, server.addr)
			conn, err := net.Dial("tcp", proxy.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if _, err := conn.Write([]byte(sent)); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("read: %v, want a reset", err)
			}
			<-server.ended
			if len(server.heard) > 0 {
				t.Errorf("the server received %q", server.heard)
			}
		})
	}
}
