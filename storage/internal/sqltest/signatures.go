package sqltest

import (
	"errors"
	"testing"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// besideHost has a transaction of the caller do something with a bound store, makes
// a call beside it, which must wait for its end, and returns what the call did.
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
	_, err = besideTx(t, name, end, func() ([]formsvc.ID, error) { return nil, beside() })
	return err
}

// signaturesBesideHost signs answers while a transaction of the caller has changed
// them: what is signed is what the end of the transaction leaves.
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

// commentsBesideHost adds a comment while a transaction of the caller has deleted
// its response, and deletes one while a transaction has added a comment.
func commentsBesideHost(t *testing.T, d Database) {
	s := newScene(t, d)
	for _, commits := range []bool{true, false} {
		key, _ := s.addResponse(t)
		comment := formsvc.Comment{
			ID: s.id(), AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID, Body: "b", CreatedAt: s.now,
		}
		create := func(store formsvc.Store) error { return store.CreateComment(t.Context(), comment, formsvc.Change{}) }
		err := s.besideHost(t, d, "a comment beside a deletion", commits, func(bound formsvc.Store) error {
			_, err := bound.DeleteResponse(t.Context(), key)
			return err
		}, func() error { return create(s) })
		if gone := errors.Is(err, formsvc.ErrNotFound); gone != commits || !gone && err != nil {
			t.Errorf("committed: %t: %v", commits, err)
		}

		key, _ = s.addResponse(t)
		comment.ID, comment.ResponseID = s.id(), key.ID
		err = s.besideHost(t, d, "a deletion beside a comment", commits, create, func() error {
			_, err := s.DeleteResponse(t.Context(), key)
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
