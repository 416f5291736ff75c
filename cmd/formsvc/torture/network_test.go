package torture_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/formsvc/toolkit/blobstore/s3blob/s3test"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// A link is a network link to a server.
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
	l = &link{t: t, proxy: toxiproxy.NewProxy(server, "link", "127.0.0.1:0", u.Host)}
	l.up()
	t.Cleanup(l.proxy.Stop)
	u.Host = l.proxy.Listen
	return l, u.String()
}

// up accepts connections, at the port where it did before if that is still free.
func (l *link) up() {
	l.t.Helper()
	waitFor(l.t, "the link is up", func() bool { return l.proxy.Start() == nil })
}

// A toxic of toxiproxy, with its attributes as JSON.
type toxic struct{ kind, stream, attributes string }

// toxics returns every way in which a link fails; none of them is without an effect on what is under way.
func toxics() []toxic {
	return []toxic{
		{"down", "", ""}, // connections are cut, and refused
		{"limit_data", "downstream", fmt.Sprintf(`"bytes":%d`, rand.IntN(1<<12))}, // cut within the replies
		{"limit_data", "upstream", fmt.Sprintf(`"bytes":%d`, rand.IntN(1<<16))},
		{"timeout", "downstream", `"timeout":0`}, // requests arrive, replies don't
		{"reset_peer", "upstream", fmt.Sprintf(`"timeout":%d`, rand.IntN(100))},
		{"timeout", "upstream", `"timeout":0`},
		{"reset_peer", "downstream", fmt.Sprintf(`"timeout":%d`, rand.IntN(100))},
		{"latency", "downstream", `"latency":300`},
		{"bandwidth", "upstream", `"rate":100`}, // KB a second
	}
}

// disturb makes a link fail for a time.
func (l *link) disturb(x toxic, d time.Duration) {
	l.t.Helper()
	if x.kind == "down" {
		l.proxy.Stop()
		time.Sleep(d)
		l.up()
		return
	}
	text := fmt.Sprintf(`{"name":"fault","type":%q,"stream":%q,"attributes":{%s}}`, x.kind, x.stream, x.attributes)
	if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
		l.t.Fatalf("%s: %v", text, err)
	}
	time.Sleep(d)
	if err := l.proxy.Toxics.RemoveToxic(context.Background(), "fault"); err != nil {
		l.t.Fatal(err)
	}
}

// disturbing makes a link fail in every way under load, each for a fraction of a second, and every tenth time for longer
// than a request may take.
func disturbing(t *testing.T, w *world, l *link, perSecond float64) verdict {
	t.Helper()
	w.startAll()
	w.begin(perSecond)
	for n := range rounds(9) {
		w.more(20)
		time.Sleep(rand.N(200 * time.Millisecond))
		d := 100*time.Millisecond + rand.N(400*time.Millisecond)
		if n%10 == 3 {
			d = 5 * time.Second
		}
		all := toxics()
		l.disturb(all[n%len(all)], d)
	}
	return w.check()
}

// Connections to Postgres are cut or hang at any moment: before a commit arrives, after it, and within its reply.
func TestPostgresLink(t *testing.T) {
	l, dsn := newLink(t, postgrestest.DSN(t))
	disturbing(t, newWorld(t, 2, setup{dsn: dsn}), l, 400)
}

// The S3 server is down, slow, hangs or cuts connections during uploads and downloads. A file is stored completely or not at
// all.
func TestS3Link(t *testing.T) {
	server := s3test.Start(t)
	l, endpoint := newLink(t, server.Endpoint)
	w := newWorld(t, 2, bucket(server, endpoint, postgrestest.DSN(t)))
	w.files = true
	disturbing(t, w, l, 200)
}

// A node that starts before its database waits for it.
func TestStartBeforeDatabase(t *testing.T) {
	l, dsn := newLink(t, postgrestest.DSN(t))
	l.proxy.Stop()
	p := (&setup{dsn: dsn, data: t.TempDir()}).launch(t)
	waitFor(t, "the node says that it waits", func() bool { return p.logged(waitingPattern) != "" || p.ended() })
	l.up()
	if !p.await() {
		t.Fatalf("the node does not serve:\n%s", p.tail())
	}
}

// bucket returns how to use a bucket of an S3 server at an endpoint.
func bucket(s *s3test.Server, endpoint, dsn string) setup {
	return setup{
		dsn: dsn, blobs: fmt.Sprintf("s3://%s?endpoint=%s&region=%s", s.Bucket, endpoint, s.Region),
		env: []string{"AWS_ACCESS_KEY_ID=" + s.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s.SecretKey},
	}
}
