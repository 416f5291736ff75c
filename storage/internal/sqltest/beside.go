package sqltest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// patience is how long to watch a call that has to wait, on a database that can't tell whether it
// does. A call that wrongly doesn't wait is detected if it ends sooner; slowness fails no test.
const patience = 100 * time.Millisecond

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
	must(t, end())
	<-ended
	return got, err
}

// filesBesideHost makes a call that depends on an open transaction of the caller: it
// waits, and its result follows from how the transaction ends.
func filesBesideHost(t *testing.T, d Database) {
	s := newScene(t, d)
	for _, c := range []struct {
		name                   string
		before, inside, beside fileCall
		committed, rolledBack  ending // of the concurrent call
	}{
		{"a bar beside a new file", nil, createFile, barFile, ending{}, ending{named: true}},
		{"a new file beside a bar", nil, barFile, createFile, ending{err: formsvc.ErrConflict}, ending{}},
		{"a deletion beside a new file", nil, createFile, deleteResponse, ending{named: true}, ending{}},
		{"a new file beside a deletion", nil, deleteResponse, createFile, ending{err: formsvc.ErrNotFound}, ending{}},
		{"a bar beside a deletion", createFile, deleteResponse, barFile, ending{named: true}, ending{}},
		{"two bars", nil, barFile, barFile, ending{named: true}, ending{named: true}},
	} {
		for _, commits := range []bool{true, false} {
			key, f := s.addResponse(t)
			if c.before != nil {
				_, err := c.before(t.Context(), s, key, f)
				must(t, err)
			}
			want, end := c.rolledBack, bun.Tx.Rollback
			if commits {
				want, end = c.committed, bun.Tx.Commit
			}
			tx, err := d.DB.BeginTx(t.Context(), nil)
			must(t, err)
			bound, err := d.Bind(tx, nil)
			must(t, err)
			_, err = c.inside(t.Context(), bound, key, f)
			must(t, err)
			got, err := d.besideTx(t, c.name, func() error { return end(tx) }, func() ([]formsvc.ID, error) {
				return c.beside(t.Context(), s, key, f)
			})
			if !errors.Is(err, want.err) || want.named != slices.Equal(got, []formsvc.ID{f.ID}) {
				t.Errorf("%s, committed: %t: %v, %v; want the file: %t, error %v", c.name, commits, got, err, want.named, want.err)
			}
		}
	}
}

// An ending is the result of a call: whether it returns the file, and its error.
type ending struct {
	named bool
	err   error
}

func countComments(t *testing.T, db *bun.DB, response formsvc.ID) int {
	t.Helper()
	n, err := db.NewSelect().TableExpr("formsvc_comments").Where("response_id = ?", string(response)).Count(t.Context())
	must(t, err)
	return int(n)
}
