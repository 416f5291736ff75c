package bunstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

type auditRow struct {
	bun.BaseModel `bun:"table:formsvc_audit,alias:t"`

	ID        ID `bun:",pk"`
	AccountID ID
	Actor     string
	Action    string
	Target    string
	Details   string // JSON
	CreatedAt int64
}

func checkAudit(a *formsvc.AuditEntry) error {
	texts := []string{a.Actor, string(a.Action), string(a.Target)}
	for name, value := range a.Details {
		texts = append(texts, name, value)
	}
	return errors.Join(checkIDs(a.ID), formsvc.CheckText(texts...))
}

func (r *auditRow) entry() (formsvc.AuditEntry, error) {
	a := formsvc.AuditEntry{
		ID: formsvc.ID(r.ID), AccountID: formsvc.ID(r.AccountID), Actor: r.Actor, Action: formsvc.AuditAction(r.Action),
		Target: formsvc.ID(r.Target), CreatedAt: fromMicros(r.CreatedAt),
	}
	if r.Details != "{}" {
		if err := json.Unmarshal([]byte(r.Details), &a.Details); err != nil {
			return a, fmt.Errorf("bunstore: details of audit entry %s: %w", r.ID, err)
		}
	}
	return a, nil
}

func (s *Store) appendAudit(ctx context.Context, c bun.IConn, a *formsvc.AuditEntry) error {
	details := []byte("{}")
	if len(a.Details) > 0 {
		var err error
		if details, err = json.Marshal(a.Details); err != nil {
			return fmt.Errorf("bunstore: details: %w", err)
		}
	}
	_, err := s.build.NewInsert().Conn(c).Model(&auditRow{
		ID: ID(a.ID), AccountID: ID(a.AccountID), Actor: a.Actor, Action: string(a.Action), Target: string(a.Target),
		Details: string(details), CreatedAt: micros(a.CreatedAt),
	}).Exec(ctx)
	return err
}

// Commit implements formsvc.Store.
func (s *Store) Commit(ctx context.Context, change formsvc.Change) error {
	if a := change.Audit; a != nil && !a.AccountID.Valid() {
		return cmp.Or(s.Usable(ctx), formsvc.ErrNotFound)
	}
	if len(change.Events) > 0 {
		return fmt.Errorf("bunstore: the events belong to no record: %w", formsvc.ErrInvalid)
	}
	return s.write(ctx, nil, &change, func(ctx context.Context, c *Tx) (err error) {
		if r := change.Idempotency; r != nil { // its account is in no foreign key
			_, err = lockRow[accountRow](ctx, s, c, "id = ?", ID(r.AccountID))
		}
		return err
	})
}

// Audit implements formsvc.Store.
func (s *Store) Audit(ctx context.Context, q formsvc.AuditQuery) (formsvc.Page[formsvc.AuditEntry], error) {
	if err := formsvc.CheckText(string(q.Action), string(q.Target)); err != nil {
		return formsvc.Page[formsvc.AuditEntry]{}, err
	}
	return pageOf(ctx, s, "t.id", q.Page, false, func(sel *bun.SelectQuery) *bun.SelectQuery {
		sel = sel.Where("t.account_id = ?", ID(q.AccountID))
		if q.Action != "" {
			sel = sel.Where("t.action = ?", string(q.Action))
		}
		if q.Target != "" {
			sel = sel.Where("t.target = ?", string(q.Target))
		}
		if !q.Since.IsZero() {
			// Round up: the column has microseconds, so a fraction of one can't be
			// compared.
			sel = sel.Where("t.created_at >= ?", micros(q.Since.Add(time.Microsecond-time.Nanosecond)))
		}
		return sel
	}, (*auditRow).entry, sizeless)
}
