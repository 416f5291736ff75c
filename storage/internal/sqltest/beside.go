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

// besideHost writes with a bound store in a transaction of the caller and makes a
// concurrent call, which must wait for the transaction's end. It returns the result of
// the call.
func (s *scene) besideHost(
	t *testing.T, d Database, name string, commits bool, inside func(formsvc.Store) error, beside func() error,
) error {
	t.Helper()
	tx, err := d.DB.BeginTx(t.Context(), nil)
	must(t, err)
	bound, err := d.Bind(tx, nil)
	must(t, err)
	must(t, inside(bound))
	end := tx.Rollback
	if commits {
		end = tx.Commit
	}
	_, err = d.besideTx(t, name, end, func() ([]formsvc.ID, error) { return nil, beside() })
	return err
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

// signaturesBesideHost signs answers that an open transaction of the caller has changed:
// the signature covers what the transaction leaves.
func signaturesBesideHost(t *testing.T, d Database) {
	s := newScene(t, d)
	for _, commits := range []bool{true, false} {
		key, _ := s.addResponse(t)
		seen := ""
		err := s.besideHost(t, d, "a signature beside a change", commits, func(bound formsvc.Store) error {
			_, err := bound.UpdateResponse(t.Context(), key, func(r *formsvc.Response) (formsvc.Change, error) {
				r.Status = "changed"
				r.Version++
				return formsvc.Change{}, nil
			})
			return err
		}, func() error {
			sig := formsvc.Signature{
				ID: s.id(), AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID, SignedAt: s.now, CreatedAt: s.now,
			}
			_, err := s.CreateSignature(t.Context(), sig, func(r *formsvc.Response, _ *formsvc.Signature) (formsvc.Change, error) {
				seen = r.Status
				return formsvc.Change{}, nil
			})
			return err
		})
		must(t, err)
		if want := map[bool]string{true: "changed", false: formsvc.StatusPending}[commits]; seen != want {
			t.Errorf("committed: %t: signed a response that is %s, want %s", commits, seen, want)
		}
	}
}

// commentsBesideHost adds a comment while a transaction of the caller has deleted the
// response, and deletes a response while one has added a comment.
func commentsBesideHost(t *testing.T, d Database) {
	s := newScene(t, d)
	for _, commits := range []bool{true, false} {
		key, _ := s.addResponse(t)
		comment := formsvc.Comment{
			ID: s.id(), AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID, Body: "b", CreatedAt: s.now,
		}
		create := func(store formsvc.Store) error { return store.CreateComment(t.Context(), comment, formsvc.Change{}) }
		err := s.besideHost(t, d, "a comment beside a deletion", commits, func(bound formsvc.Store) error {
			_, err := bound.DeleteResponse(t.Context(), key, nil)
			return err
		}, func() error { return create(s) })
		if gone := errors.Is(err, formsvc.ErrNotFound); gone != commits || !gone && err != nil {
			t.Errorf("committed: %t: %v", commits, err)
		}

		key, _ = s.addResponse(t)
		comment.ID, comment.ResponseID = s.id(), key.ID
		err = s.besideHost(t, d, "a deletion beside a comment", commits, create, func() error {
			_, err := s.DeleteResponse(t.Context(), key, nil)
			return err
		})
		must(t, err)
		if n := countComments(t, d.DB, key.ID); n != 0 {
			t.Errorf("committed: %t: a deleted response has %d comments", commits, n)
		}
	}
}

func countComments(t *testing.T, db *bun.DB, response formsvc.ID) int {
	t.Helper()
	n, err := db.NewSelect().TableExpr("formsvc_comments").Where("response_id = ?", string(response)).Count(t.Context())
	must(t, err)
	return int(n)
}
