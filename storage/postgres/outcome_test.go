package postgres_test

import (
	"bytes"
	"errors"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// The connection breaks after the server has created a response and before the reply. The
// write isn't retried, which could repeat it, and the caller gets ErrUnknownOutcome. In the
// simple protocol, pgx says that a retry is safe.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) { testUnknownOutcome(t, mode) })
	}
}

func testUnknownOutcome(t *testing.T, mode string) {
	t.Parallel()
	c, svc, campaign := behindCutter(t, mode)
	c.after(lostEmail)
	in := formsvc.ResponseInput{User: formsvc.User{Email: lostEmail}}
	if _, err := svc.Responses.Create(t.Context(), campaign.Key(), in); !errors.Is(err, formsvc.ErrUnknownOutcome) {
		t.Errorf("create: %v, want ErrUnknownOutcome", err)
	}
	c.wantCut(t)
	page, err := svc.Responses.List(t.Context(), formsvc.ResponseQuery{AccountID: campaign.AccountID, CampaignID: campaign.ID})
	if err != nil || len(page.Items) != 1 {
		t.Errorf("%d responses, want the one whose answer was lost (%v)", len(page.Items), err)
	}
}

// The connection breaks after a transaction of several statements has committed and
// before the reply.
func TestUnknownCommit(t *testing.T) {
	t.Parallel()
	c, svc, campaign := behindCutter(t, "cache_statement")
	in := formsvc.ResponseInput{User: formsvc.User{Email: lostEmail}}
	r, err := svc.Responses.Create(t.Context(), campaign.Key(), in)
	noError(t, err)
	key := formsvc.ResponseKey{AccountID: campaign.AccountID, CampaignID: campaign.ID, ID: r.ID}
	status := "changed"
	c.after("commit")
	_, err = svc.Responses.Update(t.Context(), key, formsvc.ResponsePatch{Status: &status})
	if !errors.Is(err, formsvc.ErrUnknownOutcome) || !errors.Is(err, formsvc.ErrUnavailable) {
		t.Errorf("update: %v, want ErrUnknownOutcome", err)
	}
	c.wantCut(t)
	if r, err = svc.Responses.Get(t.Context(), key); err != nil || r.Status != status || r.Version != 2 {
		t.Errorf("status %q and version %d, want the one change that was made (%v)", r.Status, r.Version, err)
	}
}

const lostEmail = "lost@example.com"

// behindCutter returns a service that reaches its database through a cutter, in a query
// mode of pgx, and a campaign.
func behindCutter(t *testing.T, mode string) (*cutter, *formsvc.Service, formsvc.Campaign) {
	t.Helper()
	dsn := must(url.Parse(postgrestest.DSN(t)))
	c := newCutter(t, dsn.Host)
	dsn.Host = c.addr
	svc, campaign := newService(t, open(t, dsn.String()+"&default_query_exec_mode="+mode, &postgres.Options{NoListen: true}))
	return c, svc, campaign
}

// A cutter forwards connections to a server. It drops the reply to one message and cuts
// the connection instead.
type cutter struct {
	addr   string
	target string
	text   atomic.Pointer[string] // in the message whose reply is dropped; nil: in none
}

func newCutter(t testing.TB, target string) *cutter {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { _ = l.Close() })
	c := &cutter{addr: l.Addr().String(), target: target}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go c.pass(client)
		}
	}()
	return c
}

// after drops the reply to the next message that contains text.
func (c *cutter) after(text string) { c.text.Store(&text) }

// wantCut fails the test unless a reply was dropped since after.
func (c *cutter) wantCut(t *testing.T) {
	t.Helper()
	if c.text.Load() != nil {
		t.Error("INVALID: no answer was lost")
	}
}

func (c *cutter) pass(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", c.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var cutting atomic.Bool
	go func() {
		defer func() { _ = server.Close() }()
		buffer := make([]byte, 64<<10)
		for {
			n, err := client.Read(buffer)
			if text := c.text.Load(); text != nil && bytes.Contains(buffer[:n], []byte(*text)) && c.text.CompareAndSwap(text, nil) {
				cutting.Store(true)
			}
			if _, failed := server.Write(buffer[:n]); failed != nil || err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if cutting.Load() || err != nil {
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}
