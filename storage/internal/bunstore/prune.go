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
	return s.prune(ctx, before, limit, func(p *pruning, ctx context.Context) (int, error) {
		return p.old(ctx, "formsvc_idempotency", "id", "created_at")
	})
}

// PruneQuota implements formsvc.MaintenanceStore.
func (s *Store) PruneQuota(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.prune(ctx, before, limit, func(p *pruning, ctx context.Context) (int, error) {
		return p.old(ctx, "formsvc_quota", "subject, start", "start")
	})
}

// PruneSessions implements formsvc.MaintenanceStore.
func (s *Store) PruneSessions(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.prune(ctx, before, limit, func(p *pruning, ctx context.Context) (int, error) {
		links, err := p.old(ctx, "formsvc_links", "id", "expires_at")
		if err != nil {
			return 0, err
		}
		sessions, err := p.old(ctx, "formsvc_sessions", "id", "expires_at")
		return links + sessions, err
	})
}

func (s *Store) prune(
	ctx context.Context, before time.Time, limit int, run func(*pruning, context.Context) (int, error),
) (deleted int, err error) {
	if err := s.ready(ctx); err != nil || limit <= 0 {
		return 0, err
	}
	err = s.write(ctx, nil, nil, func(ctx context.Context, c *Tx) (err error) {
		// Identifiers have the time to the millisecond, so they limit the index range only
		// roughly. The exact time is in a column.
		below := ID(formsvc.FloorID(before.Add(time.Millisecond)))
		deleted, err = run(&pruning{s, c, micros(before), below, limit}, ctx)
		return err
	})
	if err != nil {
		return 0, err
	}
	return deleted, nil
}

type pruning struct {
	*Store

	c      bun.IConn
	before int64 // delete what was created, began or ended before this
	below  ID    // and whose identifier is lower than this
	limit  int
}

// old deletes the oldest rows of a table by the time in a column.
func (p *pruning) old(ctx context.Context, table, key, column string) (int, error) {
	return p.delete(ctx, table, key, p.build.NewSelect().TableExpr(table).Where(column+" < ?", p.before).Order(column))
}

// oldEvents deletes events, and first what belongs to them.
func (p *pruning) oldEvents(ctx context.Context) (deleted int, err error) {
	deliveries, attempts, err := p.deliveries(ctx)
	if err != nil {
		return 0, err
	}
	deleted = deliveries + attempts
	n, err := p.delete(ctx, "formsvc_failing", "webhook_id", p.build.NewSelect().TableExpr("formsvc_failing AS f").
		Where("NOT EXISTS (SELECT 1 FROM formsvc_webhooks AS w WHERE w.id = f.webhook_id)"))
	deleted += n
	if err != nil || deliveries >= p.limit {
		return deleted, err
	}
	events, err := p.delete(ctx, "formsvc_events", "id", p.build.NewSelect().TableExpr("formsvc_events AS e").
		Where("e.id < ? AND e.created_at < ?", p.below, p.before).Order("e.id"))
	deleted += events
	if err != nil || events >= p.limit {
		return deleted, err
	}
	n, err = p.delete(ctx, "formsvc_notices", "delivery_id", p.build.NewSelect().TableExpr("formsvc_notices AS n").
		Where("n.delivery_id < ? AND NOT EXISTS (SELECT 1 FROM formsvc_events AS e WHERE e.id = n.event_id)", p.below).
		Order("n.delivery_id"))
	return deleted + n, err
}

// delete deletes up to limit rows that a query selects.
func (p *pruning) delete(ctx context.Context, table, key string, some *bun.SelectQuery) (int, error) {
	return Affected(p.build.NewDelete().Conn(p.c).TableExpr(table).
		Where("("+key+") IN (?)", some.ColumnExpr(key).Limit(int64(p.limit))).Exec(ctx))
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
func (p *pruning) deliveries(ctx context.Context) (deliveries, attempts int, err error) {
	var hooks []struct {
		WebhookID ID
		Gone      bool
	}
	if err := p.build.NewRaw(firstDeliveries, p.below, p.limit).Conn(p.c).Scan(ctx, &hooks); err != nil {
		return 0, 0, err
	}
	for _, hook := range hooks {
		if deliveries >= p.limit {
			break
		}
		some := p.build.NewSelect().Limit(int64(p.limit - deliveries))
		if !hook.Gone {
			some = some.Where("d.id < ? AND d.created_at < ?", p.below, p.before)
		}
		gone, logged, err := p.dropDeliveries(ctx, p.c, hook.WebhookID, some)
		if err != nil {
			return 0, 0, err
		}
		deliveries, attempts = deliveries+gone, attempts+logged
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
		"DELETE FROM formsvc_keys WHERE account_id = $1", deleteLinks, deleteSessions, "DELETE FROM formsvc_members WHERE account_id = $1",
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
	err = s.write(ctx, ids(account), nil, func(ctx context.Context, c *Tx) error {
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
