package sqltest

import (
	"context"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

func boundCommits(t *testing.T, d Database) {
	s := newScene(t, d)
	ctx := t.Context()
	_, err := d.DB.ExecContext(ctx, "CREATE TABLE host (response TEXT)")
	must(t, err)
	must(t, d.DB.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		bound, err := d.Bind(tx, nil)
		if err != nil {
			return err
		}
		r, change := s.response("R1")
		if err := bound.CreateResponse(ctx, r, 1, change); err != nil {
			return err
		}
		key := formsvc.ResponseKey{AccountID: r.AccountID, CampaignID: r.CampaignID, ID: r.ID}
		if _, err := bound.UpdateResponse(ctx, key, func(r *formsvc.Response) (formsvc.Change, error) {
			r.Version++
			r.Status = "validated"
			return formsvc.Change{}, nil
		}); err != nil {
			return err
		}
		got, err := bound.Response(ctx, key)
		if err != nil || got.Status != "validated" {
			t.Errorf("inside the transaction: %+v, %v", got, err)
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO host VALUES (?)", string(r.ID))
		return err
	}))
	s.wantResponses(t, 1)
	n, err := d.DB.NewSelect().Table("host").Count(ctx)
	must(t, err)
	if n != 1 {
		t.Errorf("%d rows of the host, want 1", n)
	}
}

func boundRollsBack(t *testing.T, d Database) {
	s := newScene(t, d)
	stop := errors.New("the host changed its mind")
	err := d.DB.RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
		bound, err := d.Bind(tx, nil)
		if err != nil {
			return err
		}
		r, change := s.response("R1")
		return errors.Join(bound.CreateResponse(ctx, r, 1, change), stop)
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	s.wantResponses(t, 0)
}

// boundFailure has a write fail halfway: it is undone, and the transaction continues.
func boundFailure(t *testing.T, d Database) {
	s := newScene(t, d)
	must(t, d.DB.RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
		bound, err := d.Bind(tx, nil)
		if err != nil {
			return err
		}
		r, change := s.response("R1")
		if err := bound.CreateResponse(ctx, r, 1, change); err != nil {
			return err
		}
		again, change := s.response("R1")
		if err := bound.CreateResponse(ctx, again, 1, change); !errors.Is(err, formsvc.ErrConflict) {
			t.Errorf("taken reference: %v, want ErrConflict", err)
		}
		account := formsvc.Account{ID: s.id(), Name: "b", CreatedAt: s.now}
		key := formsvc.Key{ID: s.id(), AccountID: account.ID, Hash: sha256.Sum256(nil), CreatedAt: s.now}
		twin := key
		twin.ID = s.id()
		if err := bound.CreateAccount(ctx, account, []formsvc.Key{key, twin}, formsvc.Change{}); !errors.Is(err, formsvc.ErrConflict) {
			t.Errorf("twin keys: %v, want ErrConflict", err)
		}
		if _, err := bound.Account(ctx, account.ID); !errors.Is(err, formsvc.ErrNotFound) {
			t.Errorf("half of a failed unit is there: %v", err)
		}
		return nil
	}))
	s.wantResponses(t, 1)
}

func boundOnlyTx(t *testing.T, d Database) {
	if _, ok := any(d.DB).(bunstore.Tx); ok {
		t.Error("a *bun.DB can be taken for a transaction")
	}
	if _, err := d.Bind(nil, nil); err == nil {
		t.Error("nothing is taken for a transaction")
	}
}

func boundIdentity(t *testing.T, d Database) {
	s := newScene(t, d)
	want, err := s.Identity(t.Context())
	must(t, err)
	must(t, d.DB.RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
		bound, err := d.Bind(tx, nil)
		if err != nil {
			return err
		}
		if got, err := bound.Identity(ctx); err != nil || got != want {
			t.Errorf("bound, the identity is %q, %v; want %q", got, err, want)
		}
		return nil
	}))
}
