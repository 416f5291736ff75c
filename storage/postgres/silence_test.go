//go:build long

package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// The server accepts connections and statements, and doesn't reply. Every call ends: when its context does, or by the limit of its
// connection. When the server is back, calls work again.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	s, w := throughTunnel(t, &postgres.Options{StatementTimeout: 300 * time.Millisecond, MaxConns: 4, NoListen: true})
	w.tunnel.hold()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := w.svc.Responses.Get(ctx, w.key); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read whose context ended: %v", err)
	}
	status := "changed"
	calls := map[string]func() error{
		"ready": func() error { return w.svc.Ready(t.Context()) },
		"get":   func() error { _, err := w.svc.Responses.Get(t.Context(), w.key); return err },
		"list": func() error {
			_, err := w.svc.Campaigns.List(t.Context(), formsvc.CampaignQuery{AccountID: w.key.AccountID})
			return err
		},
		"create": w.create,
		"update": func() error {
			_, err := w.svc.Responses.Update(t.Context(), w.key, formsvc.ResponsePatch{Status: &status})
			return err
		},
	}
	var all sync.WaitGroup
	for name, call := range calls {
		for range 3 {
			all.Go(func() {
				if err := call(); !errors.Is(err, formsvc.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v, want ErrUnavailable", name, err)
				}
			})
		}
	}
	all.Wait()
	w.tunnel.release()
	for name, call := range calls {
		eventually(t, name+" works again", func() bool { return call() == nil })
	}
	if n := s.PoolStats().OpenConnections; n > 4 {
		t.Errorf("%d connections are open", n)
	}
}

// After a failover, connections to the old server are dead, and nothing says so. When one fails, the other idle ones are closed, so that
// not each of them fails a request.
func TestFailoverDropsIdleConnections(t *testing.T) {
	t.Parallel()
	const conns = 8
	s, w := throughTunnel(t, &postgres.Options{StatementTimeout: 300 * time.Millisecond, MaxConns: conns, NoListen: true})
	list := func() error {
		_, err := w.svc.Campaigns.List(t.Context(), formsvc.CampaignQuery{AccountID: w.key.AccountID})
		return err
	}
	w.tunnel.hold()
	var all sync.WaitGroup
	for range conns {
		all.Go(func() { _ = list() })
	}
	eventually(t, "all connections are in use", func() bool { return s.PoolStats().InUse == conns })
	w.tunnel.release()
	all.Wait()
	eventually(t, "connections are idle", func() bool { return s.PoolStats().Idle > conns/2 })
	w.tunnel.lose()
	failed := 0
	for range conns {
		if err := list(); err != nil {
			failed++
			if !errors.Is(err, formsvc.ErrUnavailable) {
				t.Errorf("got %v, want ErrUnavailable", err)
			}
		}
	}
	// One call finds out, and a second one if it comes before the idle connections are closed. On a slow machine the connections
	// are old enough to be tried first.
	if failed > 2 {
		t.Errorf("%d of %d calls failed, want at most 2", failed, conns)
	}
}

// A statement that waits for a lock ends by the server's limit, and its connection stays open.
func TestLockedRow(t *testing.T) {
	t.Parallel()
	s, w := throughTunnel(t, &postgres.Options{StatementTimeout: 300 * time.Millisecond, MaxConns: 1, NoListen: true})
	tx := must(w.db.BeginTx(t.Context(), nil))
	defer func() { _ = tx.Rollback() }()
	must(tx.ExecContext(t.Context(), "SELECT FROM formsvc_responses FOR UPDATE"))
	before := s.PoolStats()
	status := "changed"
	if _, err := w.svc.Responses.Update(t.Context(), w.key, formsvc.ResponsePatch{Status: &status}); !errors.Is(err, formsvc.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	if _, err := w.svc.Responses.Get(t.Context(), w.key); err != nil {
		t.Error(err)
	}
	if after := s.PoolStats(); after.OpenConnections != 1 || before.OpenConnections != 1 {
		t.Errorf("%+v, before %+v", after, before)
	}
}

// Migrations wait for others as long as it takes.
func TestMigrationsHaveNoLimit(t *testing.T) {
	t.Parallel()
	s, w := throughTunnel(t, &postgres.Options{StatementTimeout: 300 * time.Millisecond, NoListen: true})
	tx := must(w.db.BeginTx(t.Context(), nil))
	defer func() { _ = tx.Rollback() }()
	must(tx.ExecContext(t.Context(), "LOCK TABLE formsvc_schema"))
	done := make(chan error, 1)
	go func() { done <- s.Migrate(t.Context()) }()
	select {
	case err := <-done:
		t.Errorf("migrating beside a lock: %v", err)
	case <-time.After(3 * time.Second): // longer than the limits of the server and the client
	}
	noError(t, tx.Rollback())
	noError(t, <-done)
}

// A tunneled service has an account, a campaign and a response.
type tunneled struct {
	tunnel *tunnel
	svc    *formsvc.Service
	key    formsvc.ResponseKey
	create func() error
	db     *sql.DB // not through the tunnel
}

func throughTunnel(t *testing.T, opts *postgres.Options) (handle, *tunneled) {
	t.Helper()
	direct := postgrestest.DSN(t)
	dsn, err := url.Parse(direct)
	noError(t, err)
	w := &tunneled{tunnel: newTunnel(t, dsn.Host)}
	dsn.Host = w.tunnel.l.Addr().String()
	q := dsn.Query()
	q.Set("connect_timeout", "1")
	dsn.RawQuery = q.Encode()
	s := open(t, dsn.String(), opts)
	var campaign formsvc.Campaign
	w.svc, campaign = newService(t, s)
	w.create = func() error {
		r, err := w.svc.Responses.Create(t.Context(), campaign.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "a@example.com"}})
		if w.key.ID == "" {
			w.key = formsvc.ResponseKey{AccountID: campaign.AccountID, CampaignID: campaign.ID, ID: r.ID}
		}
		return err
	}
	noError(t, w.create())
	w.db = must(sql.Open("pgx", direct))
	t.Cleanup(func() { _ = w.db.Close() })
	return s, w
}

// A tunnel forwards connections, and can hold back what the server sends.
type tunnel struct {
	l net.Listener

	mu    sync.Mutex
	moved sync.Cond // on mu
	held  bool      // all connections
	lost  int       // connections with lower numbers are held for good
	made  int
	ended bool
}

func newTunnel(t testing.TB, target string) *tunnel {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	u := &tunnel{l: l}
	u.moved.L = &u.mu
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = c.Close()
				continue
			}
			u.mu.Lock()
			number := u.made
			u.made++
			u.mu.Unlock()
			go pass(server, c)
			go pass(waiting{c, u, number}, server)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		u.set(func() { u.ended = true })
	})
	return u
}

func (u *tunnel) set(change func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change()
	u.moved.Broadcast()
}

func (u *tunnel) hold()    { u.set(func() { u.held = true }) }
func (u *tunnel) release() { u.set(func() { u.held = false }) }

// lose holds back everything on the connections so far, and nothing on later ones.
func (u *tunnel) lose() { u.set(func() { u.lost = u.made }) }

// A waiting connection writes when its tunnel lets it.
type waiting struct {
	net.Conn
	tunnel *tunnel
	number int
}

// Write implements io.Writer.
func (w waiting) Write(p []byte) (int, error) {
	u := w.tunnel
	u.mu.Lock()
	for !u.ended && (u.held || w.number < u.lost) {
		u.moved.Wait()
	}
	u.mu.Unlock()
	return w.Conn.Write(p)
}

func pass(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	_, _ = to.Close(), from.Close()
}

// eventually waits until ok returns true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}
