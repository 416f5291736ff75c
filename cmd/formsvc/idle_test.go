//go:build long

package main_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// An idle server queries the database about once a second, so that many servers can share one. The test counts on the wire,
// on Postgres, where the driver doubles each query by checking the connection first.
func TestIdleServerRarelyQueriesTheDatabase(t *testing.T) {
	t.Parallel()
	const most = 3 // a second
	dsn, queries := countQueries(t, postgrestest.DSN(t))
	s := start(t, dsn)
	c := newClient(t, s.url, s.firstKey(t))
	r := receiver(t)
	hook(t, dsn, r.URL(), "all")
	c.submit(t, c.campaign(t, "Idle"), "x")
	arrivals(t, r, 1)
	// Cleaning up after the work takes an unknown time.
	for tries := 1; ; tries++ {
		before, began := queries.Load(), time.Now()
		time.Sleep(5 * time.Second) // the measured period
		n, took := queries.Load()-before, time.Since(began)
		t.Logf("%d queries in %v", n, took)
		if float64(n) <= most*took.Seconds() {
			return
		}
		if tries == 12 {
			t.Fatalf("an idle server makes %d queries in %v, want at most %d a second", n, took, most)
		}
	}
}

// countQueries puts a proxy in front of a Postgres server. It returns the data source name through the proxy and the number
// of queries so far.
func countQueries(t testing.TB, dsn string) (string, *atomic.Int64) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if u.Query().Get("sslmode") != "disable" || !strings.Contains(u.Host, ":") {
		missing(t, postgrestest.Env+" is no server on a port, with sslmode=disable, for its queries to be counted")
	}
	target := u.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	n := new(atomic.Int64)
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go proxy(client, target, n)
		}
	}()
	u.Host = l.Addr().String()
	return u.String(), n
}

// proxy forwards one connection and counts the server's ReadyForQuery messages, one for each query.
func proxy(client net.Conn, target string, n *atomic.Int64) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	from := bufio.NewReader(server)
	for {
		head, err := from.Peek(5) // the type and the length
		if err != nil {
			return
		}
		if head[0] == 'Z' {
			n.Add(1)
		}
		length := 1 + int64(binary.BigEndian.Uint32(head[1:]))
		if _, err := io.CopyN(client, from, length); err != nil {
			return
		}
	}
}
