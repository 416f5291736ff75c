package bunstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

type deliveryRow struct {
	bun.BaseModel `bun:"table:formsvc_deliveries,alias:d"`

	WebhookID ID `bun:",pk"`
	ID        ID `bun:",pk"`
	EventID   ID
	EventType int64
	Size      int
	Kind      int
	State     int
	Attempts  int
	Lease     int64
	DueAt     int64
	CreatedAt int64
	UpdatedAt int64
}

// The states of a delivery, as stored.
const (
	statePending = iota
	stateDelivered
	stateFailed
)

// deliveryStates maps stored states to those of the contract.
func deliveryStates() []formsvc.DeliveryState {
	return []formsvc.DeliveryState{formsvc.DeliveryPending, formsvc.DeliveryDelivered, formsvc.DeliveryFailed}
}

func (r *deliveryRow) delivery(account formsvc.ID) formsvc.Delivery {
	d := formsvc.Delivery{
		ID: formsvc.ID(r.ID), AccountID: account, WebhookID: formsvc.ID(r.WebhookID), EventID: formsvc.ID(r.EventID),
		State: deliveryStates()[r.State], Attempts: r.Attempts,
		DueAt: fromMicros(r.DueAt), CreatedAt: fromMicros(r.CreatedAt), UpdatedAt: fromMicros(r.UpdatedAt),
		SendingSince: claimedAt(r.Lease),
	}
	d.Event, d.Test = eventOf(r.EventType)
	return d
}

type attemptRow struct {
	bun.BaseModel `bun:"table:formsvc_attempts,alias:t"`

	DeliveryID ID  `bun:",pk"`
	Number     int `bun:",pk"`
	StartedAt  int64
	Duration   int64
	Status     int
	Error      string
	Answer     []byte
}

func (r *attemptRow) attempt() formsvc.Attempt {
	a := formsvc.Attempt{
		Number: r.Number, StartedAt: fromMicros(r.StartedAt), Duration: time.Duration(r.Duration) * time.Microsecond,
		Status: r.Status, Error: r.Error,
	}
	if len(r.Answer) > 0 {
		a.Answer = r.Answer
	}
	return a
}

// withLog adds their attempts to the deliveries.
func (s *Store) withLog(ctx context.Context, c bun.IConn, list []formsvc.Delivery) error {
	ids := make([]ID, 0, len(list))
	index := make(map[ID]int, len(list))
	for i := range list {
		if list[i].Attempts > 0 {
			ids = append(ids, ID(list[i].ID))
			index[ID(list[i].ID)] = i
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var rows []attemptRow
	err := s.build.NewSelect().Conn(c).Model(&rows).Where("delivery_id IN (?)", bun.List(ids)).
		Order("delivery_id", "number").Scan(ctx)
	for i := range rows {
		d := &list[index[rows[i].DeliveryID]]
		d.Log = append(d.Log, rows[i].attempt())
	}
	return err
}

// Deliveries implements formsvc.Store.
func (s *Store) Deliveries(ctx context.Context, q formsvc.DeliveryQuery) (formsvc.Page[formsvc.Delivery], error) {
	if err := s.ready(ctx, q.AccountID, q.WebhookID); err != nil {
		return formsvc.Page[formsvc.Delivery]{}, noneWhenNotFound(err)
	}
	pending := "d.state = 0"
	if q.State == formsvc.DeliveryPending && q.NoTotal {
		n, err := s.Waiting(ctx, formsvc.WebhookKey{AccountID: q.AccountID, ID: q.WebhookID}, fewPending)
		if err != nil {
			return formsvc.Page[formsvc.Delivery]{}, err
		}
		if n == fewPending {
			pending = "d.state NOT IN (1, 2)" // the same, without that index
		}
	}
	// Rows of a deleted webhook may still be there; they must not be listed.
	page, err := pageOf(ctx, s, "d.id", q.Page, q.NoTotal, func(sel *bun.SelectQuery) *bun.SelectQuery {
		sel = sel.Where("d.webhook_id = (SELECT w.id FROM formsvc_webhooks AS w WHERE w.account_id = ? AND w.id = ?)",
			ID(q.AccountID), ID(q.WebhookID))
		if q.State == formsvc.DeliveryPending {
			return sel.Where(pending)
		}
		if state := slices.Index(deliveryStates(), q.State); state > 0 {
			return sel.Where("d.state = ?", state)
		}
		return sel
	}, sure(func(r *deliveryRow) formsvc.Delivery { return r.delivery(q.AccountID) }), sizeless)
	if err != nil {
		return page, err
	}
	return page, s.backend.Classify(s.withLog(ctx, s.read, page.Items))
}

// fewPending is up to how many pending deliveries of a webhook are found by their index and sorted, as it isn't
// in list order. If there are more, the list itself soon fills a page. For counting them all, the index is always right.
const fewPending = 1000

// Delivery implements formsvc.Store.
func (s *Store) Delivery(ctx context.Context, key formsvc.DeliveryKey) (formsvc.Delivery, error) {
	if err := s.ready(ctx, key.AccountID, key.ID); err != nil {
		return formsvc.Delivery{}, err
	}
	var row deliveryRow
	if err := s.selectDelivery(s.read, &row, key).Scan(ctx); err != nil {
		return formsvc.Delivery{}, s.notFound(err)
	}
	return s.oneWithLog(ctx, s.read, row.delivery(key.AccountID))
}

// selectDelivery finds a delivery by its identifier alone, searching each of the
// account's webhooks.
func (s *Store) selectDelivery(c bun.IConn, row *deliveryRow, key formsvc.DeliveryKey) *bun.SelectQuery {
	return s.build.NewSelect().Conn(c).Model(row).
		Where("d.webhook_id IN (SELECT w.id FROM formsvc_webhooks AS w WHERE w.account_id = ?)", ID(key.AccountID)).
		Where("d.id = ?", ID(key.ID))
}

func (s *Store) oneWithLog(ctx context.Context, c bun.IConn, d formsvc.Delivery) (formsvc.Delivery, error) {
	one := []formsvc.Delivery{d}
	err := s.withLog(ctx, c, one)
	return one[0], s.backend.Classify(err)
}

// Redeliver implements formsvc.Store.
func (s *Store) Redeliver(
	ctx context.Context, key formsvc.DeliveryKey, at time.Time, decide func(*formsvc.Delivery) (formsvc.Change, error),
) (formsvc.Delivery, error) {
	var d formsvc.Delivery
	due := micros(at)
	err := s.write(ctx, ids(key.AccountID, key.ID), nil, func(ctx context.Context, c *Tx) error {
		var row deliveryRow
		q := s.selectDelivery(c, &row, key).Where("EXISTS (SELECT 1 FROM formsvc_events AS e WHERE e.id = d.event_id)")
		if err := s.notFound(s.locked(q, " OF d").Scan(ctx)); err != nil {
			return err
		}
		switch {
		case row.State != statePending:
			row.State, row.Kind = statePending, int(delivery.Replay)
		case row.Lease&1 == 1 && row.DueAt > due:
			return formsvc.ErrConflict // a lease is still held
		}
		row.DueAt = due
		_, err := s.build.NewUpdate().Conn(c).Model(&row).Column("state", "kind", "due_at").WherePK().Exec(ctx)
		if err != nil {
			return err
		}
		if d, err = s.oneWithLog(ctx, c, row.delivery(key.AccountID)); err != nil {
			return err
		}
		c.wake = true
		return decided(ctx, s, c, &d, decide)
	})
	return d, err
}

// redeliverFailed makes failed deliveries due one after another.
const redeliverFailed = `
UPDATE formsvc_deliveries AS d SET state = 0, kind = 2, due_at = ? + p.n * ?
FROM (
  SELECT f.id, row_number() OVER (ORDER BY f.updated_at, f.id) - 1 AS n FROM (
    SELECT g.id, g.updated_at FROM formsvc_deliveries AS g
    WHERE g.webhook_id = ? AND g.state = 2 AND g.updated_at BETWEEN ? AND ?
      AND EXISTS (SELECT 1 FROM formsvc_events AS e WHERE e.id = g.event_id AND (e.type & ? <> 0
        OR EXISTS (SELECT 1 FROM formsvc_responses AS r WHERE r.campaign_id = e.campaign_id AND r.id = e.response_id)))
    ORDER BY g.updated_at, g.id LIMIT ?
  ) AS f
) AS p
WHERE d.webhook_id = ? AND d.id = p.id AND d.state = 2`

// RedeliverFailed implements formsvc.Store.
func (s *Store) RedeliverFailed(
	ctx context.Context, q formsvc.RedeliverQuery, decide func(int) (formsvc.Change, error),
) (int, error) {
	n := 0
	err := s.write(ctx, ids(q.Key.AccountID, q.Key.ID), nil, func(ctx context.Context, c *Tx) error {
		if err := s.checkWebhook(ctx, c, q.Key); err != nil {
			return err
		}
		hook := ID(q.Key.ID)
		var err error
		if n, err = Affected(s.build.NewRaw(redeliverFailed, micros(q.At), q.Pace.Microseconds(), hook,
			micros(q.Since), micros(q.Until), TestBit|eventBits(formsvc.WithoutAnswers()), max(q.Limit, 0), hook).Conn(c).Exec(ctx)); err != nil {
			return err
		}
		c.wake = n > 0
		return decided(ctx, s, c, n, decide)
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// insertTest queues the delivery of a test event.
func (s *Store) insertTest(ctx context.Context, c *Tx, e *formsvc.Event) error {
	row := &deliveryRow{
		WebhookID: ID(e.To), ID: ID(formsvc.DeliveryID(e.ID, e.To)), EventID: ID(e.ID), EventType: TypeOf(e), Size: len(e.Payload),
		Kind: int(delivery.Replay), DueAt: micros(e.CreatedAt), CreatedAt: micros(e.CreatedAt), UpdatedAt: Never,
	}
	if e.Retried {
		row.Kind = int(delivery.First)
	}
	c.wake = true
	_, err := s.build.NewInsert().Conn(c).Model(row).Exec(ctx)
	return err
}

// endpointsWithWork finds the webhooks with pending deliveries as Ready does.
const endpointsWithWork = `
WITH RECURSIVE pending(webhook_id) AS (
  SELECT (SELECT d.webhook_id FROM formsvc_deliveries AS d WHERE d.state = 0 ORDER BY d.webhook_id LIMIT 1)
  UNION ALL
  SELECT (SELECT d.webhook_id FROM formsvc_deliveries AS d
          WHERE d.state = 0 AND d.webhook_id > p.webhook_id ORDER BY d.webhook_id LIMIT 1)
  FROM pending AS p WHERE p.webhook_id IS NOT NULL
)`

const countPending = endpointsWithWork + `
SELECT count(*) FROM (
  SELECT 1 FROM pending AS p JOIN formsvc_webhooks AS w ON w.id = p.webhook_id
  JOIN formsvc_deliveries AS d ON d.webhook_id = p.webhook_id AND d.state = 0 LIMIT $1
) AS counted`

const oldestDue = endpointsWithWork + `
SELECT min(x.due_at) FROM (
  SELECT (SELECT d.due_at FROM formsvc_deliveries AS d
          WHERE d.state = 0 AND d.webhook_id = p.webhook_id AND d.kind = k.kind ORDER BY d.due_at LIMIT 1) AS due_at
  FROM pending AS p JOIN formsvc_webhooks AS w ON w.id = p.webhook_id
  CROSS JOIN (SELECT 0 AS kind UNION ALL SELECT 1 UNION ALL SELECT 2) AS k
  WHERE NOT w.disabled
) AS x WHERE x.due_at <= $1`

// countWaiting counts the pending deliveries of one webhook, as countPending does for
// all.
const countWaiting = "SELECT count(*) FROM (SELECT 1 FROM formsvc_deliveries AS d WHERE d.state = 0 AND d.webhook_id = " +
	"(SELECT w.id FROM formsvc_webhooks AS w WHERE w.account_id = $1 AND w.id = $2) LIMIT $3) AS waiting"

// Waiting implements formsvc.Store.
func (s *Store) Waiting(ctx context.Context, key formsvc.WebhookKey, limit int64) (n int64, err error) {
	if err := s.ready(ctx, key.AccountID, key.ID); err != nil {
		return 0, noneWhenNotFound(err)
	}
	row := s.read.QueryRowContext(ctx, countWaiting, s.dialect.arg(key.AccountID), s.dialect.arg(key.ID), max(limit, 0))
	err = row.Scan(&n)
	return n, s.backend.Classify(err)
}

// QueueStats implements formsvc.Store.
func (s *Store) QueueStats(ctx context.Context, now time.Time, limit int64) (formsvc.QueueStats, error) {
	var stats formsvc.QueueStats
	if err := s.ready(ctx); err != nil {
		return stats, err
	}
	var due *int64
	err := errors.Join(
		s.read.QueryRowContext(ctx, countPending, max(limit, 0)).Scan(&stats.Pending),
		s.read.QueryRowContext(ctx, oldestDue, micros(now)).Scan(&due),
	)
	if err != nil {
		return formsvc.QueueStats{}, s.backend.Classify(err)
	}
	if due != nil {
		stats.OldestDue = fromMicros(*due)
	}
	return stats, nil
}
