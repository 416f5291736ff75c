package torture_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/load"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/world"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// A link is a network link with injected faults.
type link struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

// newLink creates a link to the host of a URL, and returns the URL of its near end.
func newLink(t testing.TB, target string) (l *link, near string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	for range 20 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(15000+rand.IntN(17000)))
		l = &link{t: t, proxy: toxiproxy.NewProxy(server, "link", addr, u.Host)}
		if err = l.proxy.Start(); err == nil {
			u.Host = addr
			t.Cleanup(l.proxy.Stop)
			return l, u.String()
		}
	}
	t.Fatalf("listen: %v", err)
	return nil, ""
}

// hurt adds a toxic of toxiproxy, upstream or downstream.
func (l *link) hurt(kind, stream, attributes string) {
	l.t.Helper()
	text := fmt.Sprintf(`{"name":"fault","type":%q,"stream":%q,"attributes":{%s}}`, kind, stream, attributes)
	if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
		l.t.Fatalf("%s: %v", text, err)
	}
}

// heal removes the toxic.
func (l *link) heal() {
	l.t.Helper()
	if err := l.proxy.Toxics.RemoveToxic(context.Background(), "fault"); err != nil {
		l.t.Fatal(err)
	}
}

// The S3 server is down, slow, or cuts connections during uploads and downloads. Requests without files are unaffected, and
// a file is stored completely or not at all.
func TestS3(t *testing.T) {
	t.Parallel()
	server, _, env := bucket(t)
	way, endpoint := newLink(t, server.Endpoint)
	blobs := fmt.Sprintf("s3://%s?endpoint=%s&region=%s", server.Bucket, endpoint, server.Region)
	w := world.New(t, world.Options{Program: program(t), DSN: postgrestest.DSN(t), Blobs: blobs, Env: env, Nodes: 2})
	began, r := time.Now(), newRounds(6)
	w.StartAll()
	l := w.Load(func(o *load.Options) { o.Rate, o.Large, o.MoreFiles = 200, true, true })
	for r.next() {
		time.Sleep(rand.N(200 * time.Millisecond))
		during := 200*time.Millisecond + rand.N(400*time.Millisecond)
		switch r.done % 6 {
		case 0:
			server.Stop()
			time.Sleep(during)
			server.Restart()
			continue
		case 1:
			way.hurt("limit_data", "upstream", fmt.Sprintf(`"bytes":%d`, rand.IntN(1<<20))) // cut on the way up
		case 2:
			way.hurt("limit_data", "downstream", fmt.Sprintf(`"bytes":%d`, rand.IntN(1<<12))) // and on the way down
		case 3:
			way.hurt("latency", "downstream", `"latency":300`)
		case 4:
			way.hurt("reset_peer", "upstream", fmt.Sprintf(`"timeout":%d`, rand.IntN(100)))
		case 5:
			way.hurt("bandwidth", "upstream", `"rate":500`) // KB a second
		}
		time.Sleep(during)
		way.heal()
	}
	w.Stop(l)
	s := w.Check()
	report(t, r, "faults of S3", began, &s)
	if s.Files == 0 {
		t.Error("INVALID: there are no files")
	}
}
