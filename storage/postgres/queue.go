package postgres

import (
	"context"
	"errors"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/internal/bunstore"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// ClaimDue implements bunstore.Backend.
func (*backend) ClaimDue(
	ctx context.Context, c bun.IConn, shares []delivery.Share, now, until int64,
) ([]bunstore.Leased, error) {
	endpoints, counts, late := texts(len(shares)), make([]int32, len(shares)), make([]bool, len(shares))
	for i, s := range shares {
		endpoints[i], counts[i], late[i] = s.Endpoint, int32(min(s.N, 1<<20)), s.LateFirst //nolint:gosec // limited on this line
	}
	rows, err := c.QueryContext(ctx, claimDue, endpoints, counts, late, now, until) //nolint:rowserrcheck // ScanLeased does
	if err != nil {
		return nil, err
	}
	return bunstore.ScanLeased(nil, rows)
}

// FinishDeliveries implements bunstore.Backend.
func (*backend) FinishDeliveries(ctx context.Context, c bun.IConn, done []bunstore.Done) (accepted []bool, err error) {
	rows, err := c.QueryContext(ctx, finishDeliveries, doneArgs(done)...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	accepted = make([]bool, len(done))
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		accepted[n-1] = true
	}
	return accepted, rows.Err()
}

// doneArgs returns the columns of outcomes.
func doneArgs(done []bunstore.Done) []any {
	n := len(done)
	var (
		endpoints, ids, classes = texts(n), texts(n), texts(n)
		leases, dues            = make([]int64, n), make([]int64, n)
		states, counted         = make([]int32, n), make([]int32, n)
		ended, started          = make([]int64, n), make([]int64, n)
		durations, status       = make([]int64, n), make([]int32, n)
		answers                 = make([][]byte, n)
	)
	for i := range done {
		d := &done[i]
		endpoints[i], ids[i], leases[i] = d.Endpoint, d.ID, d.Lease
		states[i], counted[i] = int32(d.State), int32(d.Counted) //nolint:gosec // 0 to 2
		dues[i], ended[i] = d.DueAt, d.EndedAt
		started[i], durations[i] = d.Attempt.StartedAt.UnixMicro(), d.Attempt.Duration.Microseconds()
		status[i], classes[i] = int32(d.Attempt.Status), d.Error //nolint:gosec // an HTTP status
		answers[i] = append([]byte{}, d.Attempt.Answer...)
	}
	return []any{
		endpoints, ids, leases, states, counted, dues, ended, started, durations, status, classes, answers,
	}
}

// NoteNotices implements bunstore.Backend.
func (*backend) NoteNotices(ctx context.Context, c bun.IConn, ids []string) error {
	_, err := c.ExecContext(ctx, noteNotices, ids)
	return err
}

// Payloads implements bunstore.Backend.
func (*backend) Payloads(ctx context.Context, c bun.IConn, ids []string) (map[string]delivery.Payload, error) {
	rows, err := c.QueryContext(ctx, selectPayloads, ids) //nolint:rowserrcheck // ScanPayloads does
	if err != nil {
		return nil, err
	}
	return bunstore.ScanPayloads(rows, len(ids))
}
