package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// A fault is the value that tests panic with.
type fault struct{ at string }

// marked is the text in whatever must panic.
const marked = "marked to panic"

// A faultyDriver opens connections that panic, and is a hook of bun that panics.
type faultyDriver struct {
	opens driver.Driver
	dsn   string
	text  atomic.Pointer[string] // the next statement that contains it panics; nil: none
}

func (d *faultyDriver) Connect(context.Context) (driver.Conn, error) {
	c, err := d.opens.Open(d.dsn)
	return &faultyConn{c, d}, err
}

func (d *faultyDriver) Driver() driver.Driver { return d.opens }

// on makes the next statement that contains text panic.
func (d *faultyDriver) on(text string) { d.text.Store(&text) }

func (d *faultyDriver) look(query string) {
	text := d.text.Load()
	if text != nil && strings.Contains(strings.ToUpper(query), *text) && d.text.CompareAndSwap(text, nil) {
		panic(&fault{*text})
	}
}

// BeforeQuery implements bun.QueryHook.
func (d *faultyDriver) BeforeQuery(ctx context.Context, e *bun.QueryEvent) context.Context {
	if strings.Contains(e.Query, marked) {
		panic(&fault{"a hook"})
	}
	return ctx
}

// AfterQuery implements bun.QueryHook.
func (*faultyDriver) AfterQuery(context.Context, *bun.QueryEvent) {}

// A faultyConn forwards everything to a connection of either driver.
type faultyConn struct {
	driver.Conn

	d *faultyDriver
}

func (c *faultyConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.d.look(query)
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query) //nolint:forcetypeassert // both drivers have it
}

func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.d.look(query)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args) //nolint:forcetypeassert // both drivers have it
}

func (c *faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args) //nolint:forcetypeassert // both drivers have it
}

func (c *faultyConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts) //nolint:forcetypeassert // both drivers have it
}

func (c *faultyConn) CheckNamedValue(v *driver.NamedValue) error {
	if checks, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checks.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// panicking returns a scene on a single connection that panics, so that a leaked
// connection, or one left in a transaction, makes a later write fail.
func panicking(t *testing.T, d Database) (*scene, *faultyDriver) {
	t.Helper()
	f := &faultyDriver{opens: d.DB.Driver(), dsn: d.DSN}
	db := sql.OpenDB(f)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	s := &scene{Store: d.New(bun.NewDB(db, d.DB.Dialect()).WithQueryHook(f)), now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	must(t, s.Migrate(t.Context()))
	s.fill(t)
	t.Cleanup(func() { must(t, s.Close()) })
	return s, f
}

// caught makes a call and returns its panic value and its error.
func caught(call func() error) (value any, err error) {
	defer func() { value = recover() }()
	return nil, call()
}

// beside makes a call while 40 others write, and returns the panic values of the call and
// of the others. A write of another caller must exist if its call succeeded, and may
// otherwise exist only if its outcome is unknown.
func (s *scene) beside(t *testing.T, call func() error) (own any, others []any) {
	t.Helper()
	var (
		all sync.WaitGroup
		mu  sync.Mutex
	)
	type made struct {
		key    formsvc.ResponseKey
		create func() error
	}
	list := make([]made, 40)
	for i := range list {
		r, change := s.response(fmt.Sprint("N", s.made))
		list[i] = made{formsvc.ResponseKey{AccountID: r.AccountID, CampaignID: r.CampaignID, ID: r.ID}, func() error {
			return s.CreateResponse(context.WithoutCancel(t.Context()), r, 1, change)
		}}
	}
	all.Go(func() {
		var err error
		if own, err = caught(call); own == nil && err != nil && !errors.Is(err, formsvc.ErrUnknownOutcome) {
			t.Errorf("the call got neither the panic nor a clear error: %v", err)
		}
	})
	outcomes := make([]error, len(list))
	for i, m := range list {
		all.Go(func() {
			value, err := caught(m.create)
			if outcomes[i] = err; value != nil {
				outcomes[i] = formsvc.ErrUnknownOutcome
				mu.Lock()
				others = append(others, value)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for i, m := range list {
		_, err := s.Response(t.Context(), m.key)
		if unknown := errors.Is(outcomes[i], formsvc.ErrUnknownOutcome); !unknown && (err == nil) != (outcomes[i] == nil) {
			t.Errorf("a neighbour that got %v is there: %t (%v)", outcomes[i], err == nil, err)
		} else if outcomes[i] != nil && !unknown {
			t.Errorf("a neighbour: %v", outcomes[i])
		}
	}
	return own, others
}

// update returns a call that changes a response.
func (s *scene) update(t *testing.T, key formsvc.ResponseKey, decide func()) func() error {
	return func() error {
		_, err := s.UpdateResponse(t.Context(), key, func(r *formsvc.Response) (formsvc.Change, error) {
			r.Status = fmt.Sprint(r.Version)
			r.Version++
			decide()
			return formsvc.Change{}, nil
		})
		return err
	}
}

// wantVersion fails unless a response has that version and can be changed.
func (s *scene) wantVersion(t *testing.T, key formsvc.ResponseKey, want int64) {
	t.Helper()
	r, err := s.Response(t.Context(), key)
	must(t, err)
	if r.Version != want {
		t.Errorf("version %d, want %d", r.Version, want)
	}
	must(t, s.update(t, key, func() {})())
}

// panicsInUnits has a caller's function, and a hook of bun, panic inside a write. The
// panic reaches that caller unchanged, the write leaves nothing, and the others of its
// group succeed.
func panicsInUnits(t *testing.T, d Database) {
	s, _ := panicking(t, d)
	key, _ := s.addResponse(t)
	want := &fault{"decide"}
	own, others := s.beside(t, s.update(t, key, func() { panic(want) }))
	if own != any(want) || len(others) > 0 {
		t.Errorf("the call panicked with %v, its neighbours with %v; want it alone with its own value", own, others)
	}
	s.wantVersion(t, key, 1)

	comment := formsvc.Comment{
		ID: s.id(), AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID, Body: marked, CreatedAt: s.now,
	}
	own, others = s.beside(t, func() error { return s.CreateComment(t.Context(), comment, formsvc.Change{}) })
	if f, ok := own.(*fault); !ok || f.at != "a hook" || len(others) > 0 {
		t.Errorf("the call panicked with %v, its neighbours with %v; want it alone with the hook's", own, others)
	}
	if n := countComments(t, d.DB, key.ID); n != 0 {
		t.Errorf("%d comments of a unit that panicked", n)
	}
	s.wantVersion(t, key, 2)
}

// panicsInCommits has the driver panic at statements of no particular write. One caller
// gets the panic, every other write succeeds or its outcome is unknown, and later writes
// succeed.
func panicsInCommits(t *testing.T, d Database) {
	s, f := panicking(t, d)
	const create = "INTO FORMSVC_RESPONSES" // first, because Postgres prepares it only once
	for _, text := range []string{create, "BEGIN", "COMMIT"} {
		call := func() error { return nil }
		if text != create {
			key, _ := s.addResponse(t)
			call = s.update(t, key, func() {})
		}
		f.on(text)
		own, others := s.beside(t, call)
		if f.text.Load() != nil {
			t.Errorf("INVALID: nothing panicked at %s", text)
		}
		if own != nil {
			others = append(others, own)
		}
		for _, value := range others {
			if at, ok := value.(*fault); !ok || at.at != text {
				t.Errorf("%s: a caller got %v", text, value)
			}
		}
		if len(others) > 1 || text == "COMMIT" && len(others) == 0 {
			t.Errorf("%s: %d callers got the panic, want one", text, len(others))
		}
		key, _ := s.addResponse(t)
		s.wantVersion(t, key, 1)
	}
}

// unitsThatExit has a write end its goroutine, as t.FailNow does.
func unitsThatExit(t *testing.T, d Database) {
	s, _ := panicking(t, d)
	key, _ := s.addResponse(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.update(t, key, runtime.Goexit)()
	}()
	<-ended
	s.wantVersion(t, key, 1)
}

// panicsBound has a write of a bound store panic: the caller's transaction continues.
func panicsBound(t *testing.T, d Database) {
	s := newScene(t, d)
	key, _ := s.addResponse(t)
	tx, err := d.DB.BeginTx(t.Context(), nil)
	must(t, err)
	bound, err := d.Bind(tx, nil)
	must(t, err)
	want := &fault{"decide"}
	got, err := caught(func() error {
		_, err := bound.UpdateResponse(t.Context(), key, func(*formsvc.Response) (formsvc.Change, error) { panic(want) })
		return err
	})
	if got != any(want) {
		t.Errorf("the call panicked with %v (%v), want %v", got, err, want)
	}
	r, change := s.response("R1")
	must(t, bound.CreateResponse(t.Context(), r, 1, change))
	must(t, tx.Commit())
	s.wantVersion(t, formsvc.ResponseKey{AccountID: r.AccountID, CampaignID: r.CampaignID, ID: r.ID}, 1)
}
