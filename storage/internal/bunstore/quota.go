package bunstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// Granted returns SQL over the arguments of [Statements.TakeQuota] for how many requests
// it grants in a window that has counted used. mark is the prefix of arguments.
func Granted(mark, used string) string {
	argument := func(n int) string { return "CAST(" + mark + strconv.Itoa(n) + " AS BIGINT)" }
	left, need, spare := "("+argument(3)+" - "+used+")", argument(4), argument(5)
	share := "(" + left + " - " + need + ") / " + strconv.Itoa(formsvc.QuotaShare)
	return "CASE WHEN " + left + " <= 0 THEN 0 WHEN " + left + " <= " + need + " THEN " + left +
		" WHEN " + share + " < " + spare + " THEN " + need + " + " + share + " ELSE " + need + " + " + spare + " END"
}

// TakeQuota implements formsvc.QuotaStore.
func (s quotas) TakeQuota(ctx context.Context, q formsvc.QuotaQuery) (formsvc.QuotaGrant, error) {
	var none formsvc.QuotaGrant
	if err := errors.Join(s.Usable(ctx), checkIDs(q.Subject)); err != nil {
		return none, err
	}
	var used, granted, start, ends int64
	err := s.single(ctx, func(ctx context.Context, c bun.IConn) error {
		return c.QueryRowContext(ctx, s.statements.TakeQuota, string(q.Subject), q.Window.Microseconds(), q.Limit, q.Need,
			q.Spare, micros(q.Now)).Scan(&used, &granted, &start, &ends)
	})
	if err != nil {
		return none, err
	}
	return formsvc.QuotaGrant{
		Granted: int(granted), Left: max(q.Limit-int(used), 0), Start: fromMicros(start), Ends: time.Duration(ends) * time.Microsecond,
	}, nil
}

const returnQuota = "UPDATE formsvc_quota SET used = CASE WHEN used > ? THEN used - ? ELSE 0 END WHERE subject = ? AND start = ?"

// ReturnQuota implements formsvc.QuotaStore.
func (s quotas) ReturnQuota(ctx context.Context, list []formsvc.QuotaReturn) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	list = slices.DeleteFunc(slices.Clone(list), func(r formsvc.QuotaReturn) bool { return checkIDs(r.Subject) != nil })
	if len(list) == 0 {
		return nil
	}
	// Sort them, so that nodes that return quota at once don't deadlock.
	slices.SortFunc(list, func(a, b formsvc.QuotaReturn) int {
		return cmp.Or(strings.Compare(string(a.Subject), string(b.Subject)), a.Start.Compare(b.Start))
	})
	return s.unit(ctx, func(ctx context.Context, c bun.IConn) error {
		for i := range list {
			r := &list[i]
			if _, err := c.ExecContext(ctx, s.rebind(returnQuota), r.N, r.N, string(r.Subject), micros(r.Start)); err != nil {
				return fmt.Errorf("return quota: %w", err)
			}
		}
		return nil
	})
}

// QuotaUse implements formsvc.QuotaStore.
func (s quotas) QuotaUse(ctx context.Context, subject formsvc.ID, since time.Time) ([]formsvc.QuotaUse, error) {
	if err := s.ready(ctx); err != nil || checkIDs(subject) != nil {
		return nil, err
	}
	var rows []struct {
		Start int64
		Used  int
	}
	err := s.build.NewSelect().Conn(s.read).TableExpr("formsvc_quota AS q").Column("q.start", "q.used").
		Where("q.subject = ? AND q.start >= ? AND q.used > 0", string(subject), micros(since)).Order("q.start").Scan(ctx, &rows)
	if err != nil {
		return nil, s.backend.Classify(err)
	}
	list := make([]formsvc.QuotaUse, len(rows))
	for i, r := range rows {
		list[i] = formsvc.QuotaUse{Start: fromMicros(r.Start), Used: r.Used}
	}
	return list, nil
}
