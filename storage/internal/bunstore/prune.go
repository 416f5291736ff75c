package bunstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// firstDeliveries finds the oldest delivery of each webhook by jumping from one webhook
// to the next in the primary key. It returns the webhooks whose oldest delivery is to be
// deleted: it is too old, or the webhook no longer exists.
const firstDeliveries = `
WITH RECURSIVE hooks(webhook_id) AS (
  SELECT (SELECT d.webhook_id FROM formsvc_deliveries AS d ORDER BY d.webhook_id LIMIT 1)
  UNION ALL
  SELECT (SELECT d.webhook_id FROM formsvc_deliveries AS d WHERE d.webhook_id > h.webhook_id ORDER BY d.webhook_id LIMIT 1)
  FROM hooks AS h WHERE h.webhook_id IS NOT NULL
)
SELECT x.webhook_id, x.gone FROM (
  SELECT h.webhook_id, NOT EXISTS (SELECT 1 FROM formsvc_webhooks AS w WHERE w.id = h.webhook_id) AS gone,
    (SELECT d.id FROM formsvc_deliveries AS d WHERE d.webhook_id = h.webhook_id ORDER BY d.id LIMIT 1) AS first
  FROM hooks AS h WHERE h.webhook_id IS NOT NULL
) AS x WHERE x.gone OR x.first < ? ORDER BY x.webhook_id LIMIT ?`

// PruneEvents implements formsvc.MaintenanceStore.
func (s *Store) PruneEvents(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.prune(ctx, before, limit, (*pruning).oldEvents)
}

// PruneIdempotency implements formsvc.MaintenanceStore.
func (s *Store) PruneIdempotency(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.prune(ctx, before, limit, (*pruning).oldRecords)
}

// PruneQuota implements formsvc.MaintenanceStore.
func (s *Store) PruneQuota(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.prune(ctx, before, limit, (*pruning).oldQuota)
}

// PruneSessions implements formsvc.MaintenanceStore.
func (s *Store) PruneSessions(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.prune(ctx, before, limit, (*pruning).oldSessions)
}

func (s *Store) prune(
	ctx context.Context, before time.Time, limit int, run func(*pruning, context.Context, bun.IConn) (int, error),
) (int, error) {
	if err := s.ready(ctx); err != nil || limit <= 0 {
		return 0, err
	}
	p := &pruning{Store: s, before: micros(before), limit: limit}
	// Identifiers have the time to the millisecond, so they limit the index range only
	// roughly. The exact time is in a column.
	p.below = ID(formsvc.FloorID(before.Add(time.Millisecond)))
	deleted := 0
	err := s.write(ctx, nil, func(ctx context.Context, c *Tx) (err error) {
		deleted, err = run(p, ctx, c)
		return err
	})
	if err != nil {
		return 0, err
	}
	return deleted, nil
}

type pruning struct {
	*Store

	before int64 // delete what was created, began or ended before this
	below  ID    // and whose identifier is lower than this
	limit  int
}

func (p *pruning) oldRecords(ctx context.Context, c bun.IConn) (int, error) {
	return p.delete(ctx, c, "formsvc_idempotency", "id", p.build.NewSelect().TableExpr("formsvc_idempotency AS i").
		Where("i.created_at < ?", p.before).Order("i.created_at"))
}

func (p *pruning) oldQuota(ctx context.Context, c bun.IConn) (int, error) {
	some := p.build.NewSelect().TableExpr("formsvc_quota AS q").Column("q.subject", "q.start").Where("q.start < ?", p.before)
	return Affected(p.build.NewDelete().Conn(c).TableExpr("formsvc_quota").
		Where("(subject, start) IN (?)", some.Limit(int64(p.limit))).Exec(ctx))
}

func (p *pruning) oldSessions(ctx context.Context, c bun.IConn) (deleted int, err error) {
	for _, table := range []string{"formsvc_links", "formsvc_sessions"} {
		over := p.build.NewSelect().TableExpr(table+" AS o").Where("o.expires_at < ?", p.before).Order("o.expires_at")
		n, err := p.delete(ctx, c, table, "id", over)
		if err != nil {
			return 0, err
		}
		deleted += n
	}
	return deleted, nil
}

// oldEvents deletes events, and first what belongs to them.
func (p *pruning) oldEvents(ctx context.Context, c bun.IConn) (deleted int, err error) {
	deliveries, attempts, err := p.deliveries(ctx, c)
	if err != nil {
		return 0, err
	}
	deleted = deliveries + attempts
	n, err := p.delete(ctx, c, "formsvc_failing", "webhook_id", p.build.NewSelect().TableExpr("formsvc_failing AS f").
		Where("NOT EXISTS (SELECT 1 FROM formsvc_webhooks AS w WHERE w.id = f.webhook_id)"))
	deleted += n
	if err != nil || deliveries >= p.limit {
		return deleted, err
	}
	events, err := p.delete(ctx, c, "formsvc_events", "id", p.build.NewSelect().TableExpr("formsvc_events AS e").
		Where("e.id < ? AND e.created_at < ?", p.below, p.before).Order("e.id"))
	deleted += events
	if err != nil || events >= p.limit {
		return deleted, err
	}
	n, err = p.delete(ctx, c, "formsvc_notices", "delivery_id", p.build.NewSelect().TableExpr("formsvc_notices AS n").
		Where("n.delivery_id < ? AND NOT EXISTS (SELECT 1 FROM formsvc_events AS e WHERE e.id = n.event_id)", p.below).
		Order("n.delivery_id"))
	return deleted + n, err
}

// delete deletes up to limit rows that a query selects.
func (p *pruning) delete(ctx context.Context, c bun.IConn, table, key string, some *bun.SelectQuery) (int, error) {
	return Affected(p.build.NewDelete().Conn(c).TableExpr(table).
		Where("? IN (?)", bun.Ident(key), some.Column(key).Limit(int64(p.limit))).Exec(ctx))
}

// Affected returns how many rows a statement changed.
func Affected(result sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// deliveries deletes deliveries and their attempts, webhook by webhook.
func (p *pruning) deliveries(ctx context.Context, c bun.IConn) (deliveries, attempts int, err error) {
	var hooks []struct {
		WebhookID ID
		Gone      bool
	}
	if err := p.build.NewRaw(firstDeliveries, p.below, p.limit).Conn(c).Scan(ctx, &hooks); err != nil {
		return 0, 0, err
	}
	for _, hook := range hooks {
		if deliveries >= p.limit {
			break
		}
		some := p.build.NewSelect().TableExpr("formsvc_deliveries AS d").Column("d.id").
			Where("d.webhook_id = ?", hook.WebhookID).Order("d.id").Limit(int64(p.limit - deliveries))
		if !hook.Gone {
			some = some.Where("d.id < ? AND d.created_at < ?", p.below, p.before)
		}
		var ids []ID
		// Delete attempts after their deliveries: one that finishes meanwhile has added
		// its attempt by then.
		err := p.build.NewDelete().Conn(c).TableExpr("formsvc_deliveries").
			Where("webhook_id = ? AND id IN (?)", hook.WebhookID, some).Returning("id").Scan(ctx, &ids)
		if err != nil {
			return 0, 0, err
		}
		if len(ids) == 0 {
			continue
		}
		n, err := Affected(p.build.NewDelete().Conn(c).TableExpr("formsvc_attempts").
			Where("delivery_id IN (?)", bun.List(ids)).Exec(ctx))
		if err != nil {
			return 0, 0, err
		}
		deliveries += len(ids)
		attempts += n
	}
	return deliveries, attempts, nil
}

// accountSteps returns the steps of deleting an account. Each begins when those before find nothing, and the first always
// finds campaigns. It also lets the triggers allow the deletion of the audit trail. No index has idempotency records by
// account, so a call may read the whole table, which has those of a day.
func accountSteps(limit int) [][]string {
	some := func(table, id string) string {
		return fmt.Sprintf("DELETE FROM %s WHERE %s IN (SELECT %[2]s FROM %[1]s WHERE account_id = $1 LIMIT %[3]d)", table, id, limit)
	}
	return [][]string{{
		"UPDATE formsvc_accounts SET deleted = true WHERE id = $1" +
			" AND (NOT deleted OR EXISTS (SELECT 1 FROM formsvc_campaigns AS c WHERE c.account_id = $1))",
		"DELETE FROM formsvc_quota WHERE subject IN (SELECT k.id FROM formsvc_keys AS k WHERE k.account_id = $1)",
		"DELETE FROM formsvc_quota WHERE subject = $1",
		"DELETE FROM formsvc_keys WHERE account_id = $1", deleteLinks, deleteSessions,
		"DELETE FROM formsvc_webhooks WHERE account_id = $1",
	}, {
		some("formsvc_notices", "delivery_id"), some("formsvc_audit", "id"), some("formsvc_events", "id"),
	}, {
		some("formsvc_idempotency", "id"),
	}, {
		"DELETE FROM formsvc_accounts WHERE id = $1",
	}}
}

// DeleteAccount implements formsvc.MaintenanceStore. It locks the account: writes that refer to it by a foreign key have
// committed then, or fail afterwards. All others need a campaign or a webhook.
func (s *Store) DeleteAccount(ctx context.Context, account formsvc.ID, limit int) (out formsvc.Erased, err error) {
	if err := s.ready(ctx, account); err != nil {
		return out, err
	}
	err = s.write(ctx, nil, func(ctx context.Context, c *Tx) error {
		_, err := lockRow[accountRow](ctx, s, c, "id = ?", ID(account))
		for i, step := range accountSteps(limit) {
			removed, n := 0, 0
			for _, statement := range step {
				if err != nil {
					return err
				}
				n, err = Affected(c.ExecContext(ctx, statement, s.dialect.arg(account)))
				removed += n
			}
			if removed > 0 {
				out = [...]formsvc.Erased{{}, {Events: n}, {}, {Account: true}}[i]
				break
			}
		}
		return err
	})
	return out, err
}
