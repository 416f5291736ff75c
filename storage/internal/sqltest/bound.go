package sqltest

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
	"github.com/formsvc/toolkit/storage/keyring"
)

// bound runs a function on a store that is bound to a transaction of the host, which ends with the function's error.
func (d Database) bound(t *testing.T, ring *keyring.Keyring, do func(tx bun.Tx, b formsvc.Store) error) error {
	t.Helper()
	return d.DB.RunInTx(t.Context(), nil, func(_ context.Context, tx bun.Tx) error {
		b, err := d.Bind(tx, ring)
		if err != nil {
			return err
		}
		return do(tx, b)
	})
}

// boundWrites writes in a transaction of the host, which commits or rolls back. Writes that fail, or panic, are undone, and
// the transaction continues.
func boundWrites(t *testing.T, d Database) {
	s := newScene(t, d)
	ctx := t.Context()
	must(d.DB.ExecContext(ctx, "CREATE TABLE host (response TEXT)"))
	noError(t, s.Commit(ctx, formsvc.Change{Idempotency: s.record("taken")}))
	identity := must(s.Identity(ctx))
	for _, end := range []error{errors.New("the host changed its mind"), nil} {
		err := d.bound(t, nil, func(tx bun.Tx, b formsvc.Store) error {
			r, change := s.response("R1")
			change.Idempotency = s.record("new")
			noError(t, b.CreateResponse(ctx, r, 1, change))
			s.boundFailures(t, b, r.Key())
			noError(t, s.update(ctx, b, r.Key(), func() {}))
			if got, err := b.Response(ctx, r.Key()); err != nil || got.Version != 2 {
				t.Errorf("inside the transaction: %+v, %v", got, err)
			}
			if got, err := b.Identity(ctx); err != nil || got != identity {
				t.Errorf("bound, the identity is %q, %v; want %q", got, err, identity)
			}
			_, err := tx.ExecContext(ctx, "INSERT INTO host VALUES (?)", string(r.ID))
			return errors.Join(err, end)
		})
		if !errors.Is(err, end) {
			t.Fatal(err)
		}
		want := 0
		if end == nil {
			want = 1
		}
		s.wantResponses(t, want)
		if n, err := d.DB.NewSelect().Table("host").Count(ctx); err != nil || int(n) != want {
			t.Errorf("%d rows of the host, want %d (%v)", n, want, err)
		}
		if _, err := s.Recall(ctx, s.account, "new", s.now); (err == nil) != (end == nil) {
			t.Errorf("Recall: %v", err)
		}
	}
	if _, ok := any(d.DB).(storage.Tx); ok {
		t.Error("a *bun.DB can be taken for a transaction")
	}
	if _, err := d.Bind(nil, nil); err == nil {
		t.Error("nothing is taken for a transaction")
	}
}

// boundFailures makes writes that fail halfway.
func (s *scene) boundFailures(t *testing.T, b formsvc.Store, key formsvc.ResponseKey) {
	t.Helper()
	again, change := s.response("R1")
	if err := b.CreateResponse(t.Context(), again, 1, change); !errors.Is(err, formsvc.ErrConflict) {
		t.Errorf("taken reference: %v, want ErrConflict", err)
	}
	account := formsvc.Account{ID: s.id(), Name: "b", CreatedAt: s.now}
	twins := []formsvc.Key{{ID: s.id(), AccountID: account.ID, CreatedAt: s.now}, {ID: s.id(), AccountID: account.ID, CreatedAt: s.now}}
	if err := b.CreateAccount(t.Context(), account, twins, formsvc.Change{}); !errors.Is(err, formsvc.ErrConflict) {
		t.Errorf("twin keys: %v, want ErrConflict", err)
	}
	if _, err := b.Account(t.Context(), account.ID); !errors.Is(err, formsvc.ErrNotFound) {
		t.Errorf("half of a failed write is there: %v", err)
	}
	for name, call := range keyedCalls() {
		for _, taken := range []string{"taken", "new"} {
			if _, err := call(t.Context(), s, b, key, s.record(taken)); !errors.Is(err, formsvc.ErrRepeated) {
				t.Errorf("%s with a taken key: %v", name, err)
			}
		}
	}
	value, _ := caught(func() error { return s.update(t.Context(), b, key, func() { panic("decide") }) })
	if value != "decide" {
		t.Errorf("the call panicked with %v", value)
	}
}

// caught makes a call and returns its panic value and its error.
func caught(call func() error) (value any, err error) {
	defer func() { value = recover() }()
	return nil, call()
}

// A hostCall is a call about a response that may depend on an open transaction: it returns identifiers of files.
type hostCall func(context.Context, *scene, formsvc.Store, formsvc.ResponseKey, *formsvc.IdempotencyRecord) ([]formsvc.ID, error)

// keyedCalls are three kinds of writes: in a group, in a transaction of its own, and the record alone.
func keyedCalls() map[string]hostCall {
	return map[string]hostCall{
		"a response": func(ctx context.Context, s *scene, on formsvc.Store, _ formsvc.ResponseKey, record *formsvc.IdempotencyRecord) ([]formsvc.ID, error) {
			r, change := s.response("R-" + string(s.id()))
			record.ResponseID, record.Result = r.ID, nil
			change.Idempotency = record
			return nil, on.CreateResponse(ctx, r, 1, change)
		},
		"a campaign": func(ctx context.Context, s *scene, on formsvc.Store, _ formsvc.ResponseKey, record *formsvc.IdempotencyRecord) ([]formsvc.ID, error) {
			c := s.campaign
			c.ID = s.id()
			return nil, on.CreateCampaign(ctx, c, formsvc.Change{Idempotency: record})
		},
		"a record": func(ctx context.Context, _ *scene, on formsvc.Store, _ formsvc.ResponseKey, record *formsvc.IdempotencyRecord) ([]formsvc.ID, error) {
			return nil, on.Commit(ctx, formsvc.Change{Idempotency: record})
		},
	}
}

// The calls about a file whose identifier is that of the response.
func createFile(ctx context.Context, s *scene, on formsvc.Store, key formsvc.ResponseKey, _ *formsvc.IdempotencyRecord) ([]formsvc.ID, error) {
	f := formsvc.File{ID: key.ID, AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID, Name: "a", CreatedAt: s.now}
	return nil, on.CreateFile(ctx, f, func(*formsvc.Response) (formsvc.Change, error) { return formsvc.Change{}, nil })
}

func barFile(ctx context.Context, _ *scene, on formsvc.Store, key formsvc.ResponseKey, _ *formsvc.IdempotencyRecord) ([]formsvc.ID, error) {
	return on.BarFiles(ctx, []formsvc.ID{key.ID})
}

func deleteResponse(ctx context.Context, _ *scene, on formsvc.Store, key formsvc.ResponseKey, _ *formsvc.IdempotencyRecord) ([]formsvc.ID, error) {
	return on.DeleteResponse(ctx, key, nil)
}

// An ending is the result of a call: whether it returns the file, and its error.
type ending struct {
	named bool
	err   error
}

// besideHost makes calls that depend on an open transaction of the host: they wait, and their results follow from how the
// transaction ends.
func besideHost(t *testing.T, d Database) {
	s := newScene(t, d)
	type hostCase struct {
		name                   string
		before, inside, beside hostCall
		committed, rolledBack  ending // of the concurrent call
	}
	cases := []hostCase{
		{"a bar beside a new file", nil, createFile, barFile, ending{}, ending{named: true}},
		{"a new file beside a bar", nil, barFile, createFile, ending{err: formsvc.ErrConflict}, ending{}},
		{"a deletion beside a new file", nil, createFile, deleteResponse, ending{named: true}, ending{}},
		{"a new file beside a deletion", nil, deleteResponse, createFile, ending{err: formsvc.ErrNotFound}, ending{}},
		{"a bar beside a deletion", createFile, deleteResponse, barFile, ending{named: true}, ending{}},
		{"two bars", nil, barFile, barFile, ending{named: true}, ending{named: true}},
	}
	keyed := keyedCalls()
	for inside, beside := range map[string]string{"a response": "a response", "a record": "a campaign"} {
		cases = append(cases, hostCase{
			beside + " beside " + inside + " with its key", nil, keyed[inside], keyed[beside], ending{err: formsvc.ErrRepeated}, ending{},
		})
	}
	for _, c := range cases {
		for _, commits := range []bool{true, false} {
			r, change := s.response("R" + string(s.id()))
			noError(t, s.CreateResponse(t.Context(), r, 1, change))
			key, record := r.Key(), s.record(string(r.ID))
			if c.before != nil {
				must(c.before(t.Context(), s, s, key, record))
			}
			want, end := c.rolledBack, bun.Tx.Rollback
			if commits {
				want, end = c.committed, bun.Tx.Commit
			}
			tx := must(d.DB.BeginTx(t.Context(), nil))
			b := must(d.Bind(tx, nil))
			must(c.inside(t.Context(), s, b, key, record))
			got, err := d.besideTx(t, c.name, func() error { return end(tx) }, func() ([]formsvc.ID, error) {
				return c.beside(t.Context(), s, s, key, record)
			})
			if !errors.Is(err, want.err) || want.named != slices.Equal(got, []formsvc.ID{key.ID}) {
				t.Errorf("%s, committed: %t: %v, %v; want the file: %t, error %v", c.name, commits, got, err, want.named, want.err)
			}
		}
	}
}

// patience is how long to watch a call that has to wait, on a database that can't tell whether it does. A call that wrongly
// doesn't wait is detected if it ends sooner; slowness fails no test.
const patience = 50 * time.Millisecond

// watch fails the test if a call ends instead of waiting.
func (d Database) watch(t *testing.T, name string, ended <-chan struct{}) {
	t.Helper()
	if d.Waiting == nil {
		select {
		case <-ended:
			t.Errorf("%s: it did not wait for the transaction", name)
		case <-time.After(patience):
		}
		return
	}
	for !d.Waiting(t) {
		select {
		case <-ended:
			t.Errorf("%s: it did not wait for the transaction", name)
			return
		default:
		}
	}
}

// besideTx makes a call that must wait until end has ended a transaction.
func (d Database) besideTx(t *testing.T, name string, end func() error, call func() ([]formsvc.ID, error)) (got []formsvc.ID, err error) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		got, err = call()
	}()
	d.watch(t, name, ended)
	noError(t, end())
	<-ended
	return got, err
}

func (s *scene) record(key string) *formsvc.IdempotencyRecord {
	return &formsvc.IdempotencyRecord{
		AccountID: s.account, Key: key, CreatedAt: s.now, Result: []byte("{}"), Request: sha256.Sum256(nil),
	}
}
