package sqltest

import (
	"context"
	"errors"
	"testing"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// A keyedCall writes something together with a record.
type keyedCall func(ctx context.Context, s *scene, on formsvc.Store, record *formsvc.IdempotencyRecord) error

// keyedCalls are three kinds of writes: in a group, in a transaction of its own, and the
// record alone.
func keyedCalls() map[string]keyedCall {
	return map[string]keyedCall{
		"a response": func(ctx context.Context, s *scene, on formsvc.Store, record *formsvc.IdempotencyRecord) error {
			r, change := s.response("R-" + string(s.id()))
			change.Idempotency = record
			return on.CreateResponse(ctx, r, 1, change)
		},
		"a campaign": func(ctx context.Context, s *scene, on formsvc.Store, record *formsvc.IdempotencyRecord) error {
			c := s.campaign
			c.ID = s.id()
			return on.CreateCampaign(ctx, c, formsvc.Change{Idempotency: record})
		},
		"an answer": func(ctx context.Context, _ *scene, on formsvc.Store, record *formsvc.IdempotencyRecord) error {
			return on.Note(ctx, formsvc.Change{Idempotency: record})
		},
	}
}

func (s *scene) record(key string) *formsvc.IdempotencyRecord {
	return &formsvc.IdempotencyRecord{
		AccountID: s.account, Key: key, CreatedAt: s.now, Reply: formsvc.Reply{Status: 201, Body: []byte("{}")},
	}
}

// wantRecord checks whether a record exists.
func (s *scene) wantRecord(t *testing.T, on formsvc.Store, key string, want bool) {
	t.Helper()
	_, err := on.Recall(t.Context(), s.account, key, s.now)
	if want && err != nil || !want && !errors.Is(err, formsvc.ErrNotFound) {
		t.Errorf("Recall(%q): %v, want it there: %t", key, err, want)
	}
}

// keysBound uses keys in a transaction of the caller: they commit or roll back with it,
// and a taken key fails only its own write.
func keysBound(t *testing.T, d Database) {
	s := newScene(t, d)
	ctx := t.Context()
	must(t, s.Note(ctx, formsvc.Change{Idempotency: s.record("taken")}))
	stop := errors.New("the host changed its mind")
	for _, end := range []error{stop, nil} {
		err := d.DB.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			bound, err := d.Bind(tx, nil)
			must(t, err)
			for name, call := range keyedCalls() {
				if err := call(ctx, s, bound, s.record("taken")); !errors.Is(err, formsvc.ErrRepeated) {
					t.Errorf("%s with a taken key: %v", name, err)
				}
				must(t, call(ctx, s, bound, s.record(name)))
				if err := call(ctx, s, bound, s.record(name)); !errors.Is(err, formsvc.ErrRepeated) {
					t.Errorf("%s, again: %v", name, err)
				}
				s.wantRecord(t, bound, name, true)
			}
			return end
		})
		if !errors.Is(err, end) {
			t.Fatal(err)
		}
		for name := range keyedCalls() {
			s.wantRecord(t, s, name, end == nil)
		}
	}
	s.wantResponses(t, 1)
}

// keysBesideHost makes a write whose key an open transaction has, which then ends.
func keysBesideHost(t *testing.T, d Database) {
	s := newScene(t, d)
	for inside, first := range keyedCalls() {
		for beside, second := range keyedCalls() {
			for _, commits := range []bool{true, false} {
				key := string(s.id())
				want, end := error(nil), bun.Tx.Rollback
				if commits {
					want, end = formsvc.ErrRepeated, bun.Tx.Commit
				}
				tx, err := d.DB.BeginTx(t.Context(), nil)
				must(t, err)
				bound, err := d.Bind(tx, nil)
				must(t, err)
				must(t, first(t.Context(), s, bound, s.record(key)))
				_, err = d.besideTx(t, beside, func() error { return end(tx) }, func() ([]formsvc.ID, error) {
					return nil, second(t.Context(), s, s, s.record(key))
				})
				if !errors.Is(err, want) {
					t.Errorf("%s beside %s, committed: %t: %v, want %v", beside, inside, commits, err, want)
				}
				s.wantRecord(t, s, key, true)
			}
		}
	}
}
