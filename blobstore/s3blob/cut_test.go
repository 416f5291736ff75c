//go:build long

package s3blob_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/s3blob"
	"github.com/formsvc/toolkit/blobstore/s3blob/s3test"
)

// A cutter forwards connections to a server, and breaks each one after a number of bytes.
type cutter struct {
	address string
	limit   atomic.Int64
}

func newCutter(t *testing.T, server *s3test.Server) *cutter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{address: "http://" + listener.Addr().String()}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer context.AfterFunc(t.Context(), func() { _ = client.Close() })() // the connection may be kept for another request
				c.pass(client, target.Host)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return c
}

func (c *cutter) pass(client net.Conn, target string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	_, _ = io.CopyN(server, client, c.limit.Load())
	_ = server.Close()
	<-answered
}

func TestConnectionBreaksDuringPut(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	for name, c := range map[string]struct {
		size  int
		limit int64 // bytes before a connection breaks
	}{
		"no connection":                    {12 * mib, 0},
		"in the first header":              {12 * mib, 100},
		"in the content of a small one":    {100_000, 50_000},
		"in the content of one request":    {2 * mib, 1_500_000},
		"in the header of a part":          {12 * mib, 600},
		"in the middle of a part":          {12 * mib, 1_500_000},
		"just before the end of one part":  {5*mib + 1, 5 * mib},
		"in the content of the first part": {20 * mib, 70_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := newCutter(t, server)
			proxy.limit.Store(c.limit)
			bucket, err := s3blob.ParseURL("s3://"+server.Bucket+"?endpoint="+proxy.address, nil)
			if err != nil {
				t.Fatal(err)
			}
			bucket.Prefix = strings.ReplaceAll(name, " ", "-")
			_, err = newStoreOf(t, bucket, server, nil).Put(t.Context(), "blob", bytes.NewReader(pattern(c.size)))
			if !errors.Is(err, blobstore.ErrUnavailable) {
				t.Errorf("Put: %v, want ErrUnavailable", err)
			}
			// A request to abort needs few bytes.
			if left := uploads(t, server, bucket.Prefix); c.limit > 1000 && len(left) > 0 {
				t.Errorf("incomplete uploads are left: %v", left)
			}
			store := newStoreAt(t, server, bucket.Prefix, nil)
			if keys, err := list(t.Context(), store); err != nil || len(keys) > 0 {
				t.Errorf("%v is there, %v", keys, err)
			}
			mustPut(t, store, "blob", pattern(c.size))
		})
	}
}
