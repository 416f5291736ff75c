package process

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
)

// hostile are receivers that do harm: one listener for each kind.
type hostile struct {
	stop      context.CancelFunc
	listeners []net.Listener
	work      sync.WaitGroup
}

// HangKind accepts the request and never answers.
const HangKind = "hang"

// HostileKinds are all kinds, in the order endpoints take them.
func HostileKinds() []string {
	return []string{HangKind, "trickle", "endless", "gzip bomb", "headers", "1xx storm", "reset"}
}

// A harm is what a connection does when it has the request's head: it writes the head, and
// then the block again and again. The pause keeps it from taking the machine from those who are
// measured.
type harm struct {
	head, block string
	pause       time.Duration // 0: nothing comes after the head
	reset       bool
}

func newHarm(kind string) harm {
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
	switch kind {
	case "trickle":
		return harm{head: ok + "Content-Length: 1000000\r\n\r\n", block: ".", pause: time.Second}
	case "endless":
		return harm{head: ok + "\r\n", block: strings.Repeat("junk", 16<<10), pause: 5 * time.Millisecond}
	case "gzip bomb":
		bomb := zeros(256 << 20)
		return harm{head: fmt.Sprintf(ok+"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(bomb), bomb)}
	case "headers":
		return harm{head: ok + strings.Repeat("X-Long: "+strings.Repeat("h", 1014)+"\r\n", 100) + "Content-Length: 0\r\n\r\n"}
	case "1xx storm":
		return harm{block: strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 100), pause: time.Millisecond}
	}
	return harm{reset: kind == "reset", pause: time.Hour} // HangKind
}

// do ends when ctx does or the other side closes.
func (h *harm) do(ctx context.Context, conn *net.TCPConn) {
	if h.reset {
		_ = conn.SetLinger(0) // the close sends a reset
		return
	}
	if _, err := io.WriteString(conn, h.head); err != nil || h.pause == 0 {
		return
	}
	ticker := time.NewTicker(h.pause)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if _, err := io.WriteString(conn, h.block); err != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// zeros returns n zero bytes, compressed.
func zeros(n int) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	block := make([]byte, 1<<20)
	for range n / len(block) {
		_, _ = w.Write(block) // a bytes.Buffer takes everything
	}
	_ = w.Close()
	return b.Bytes()
}

func newHostile(ctx context.Context) (worker.Worker, worker.Reply, error) {
	ctx, cancel := context.WithCancel(ctx)
	h := &hostile{stop: cancel}
	ready := worker.Reply{Addrs: make(map[string]string)}
	for _, kind := range HostileKinds() {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, ready, errors.Join(fmt.Errorf("hostile receiver: %w", err), h.Close())
		}
		h.listeners = append(h.listeners, l)
		ready.Addrs[kind] = "http://" + l.Addr().String()
		harm := newHarm(kind)
		h.work.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				h.work.Go(func() { serveHarm(ctx, conn.(*net.TCPConn), harm.do) })
			}
		})
	}
	return h, ready, nil
}

// serveHarm reads the head of one request, and lets the rest be.
func serveHarm(ctx context.Context, conn *net.TCPConn, do func(context.Context, *net.TCPConn)) {
	defer func() { _ = conn.Close() }()
	_ = conn.SetWriteBuffer(32 << 10) // otherwise megabytes are on their way to someone who reads little
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		if line == "\r\n" {
			break
		}
	}
	// The other side's close ends what only waits.
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, r)
	}()
	do(ctx, conn)
}

func (h *hostile) Do(context.Context, worker.Command) (worker.Reply, error) {
	return worker.Reply{}, errors.New("a hostile receiver does nothing else")
}

// Close ends every connection.
func (h *hostile) Close() error {
	h.stop()
	var err error
	for _, l := range h.listeners {
		err = errors.Join(err, l.Close())
	}
	h.work.Wait()
	return err
}
