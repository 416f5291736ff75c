package bunstore

import (
	"context"
	"maps"
	"slices"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// limited reports whether the unit creates a response of an account or campaign with a limit. On Postgres its group needs a
// transaction, which locks these.
func (u *Unit) limited() bool {
	return u.Creation != nil && (u.Creation.Change.Limit > 0 || len(u.Creation.Change.Places) > 0)
}

// split returns the creations of a group that are within the limits of their account and campaign if all of them succeed, and
// the others.
func (k *Config) split(ctx context.Context, c bun.IConn, group []*Unit) (within, beyond []*Unit, err error) {
	if !slices.ContainsFunc(group, (*Unit).limited) {
		return group, nil, nil
	}
	used := make(map[formsvc.ID]int)
	list := make([]*Creation, len(group))
	for i, u := range group {
		if list[i] = u.Creation; u.Creation.Change.Limit > 0 {
			used[u.Creation.Response.AccountID] = 0
		}
	}
	for _, account := range slices.Sorted(maps.Keys(used)) { // in one order, so that groups don't deadlock
		if used[account], err = k.responsesOf(ctx, c, account); err != nil {
			return nil, nil, err
		}
	}
	places, err := k.asked(ctx, c, list)
	if err != nil {
		return nil, nil, err
	}
	for _, u := range group {
		n := u.Creation
		account := n.Response.AccountID
		n.full = places.full(n)
		if n.Change.Limit > 0 && used[account] >= n.Change.Limit {
			n.full = formsvc.ErrLimit
		}
		if n.full != nil {
			beyond = append(beyond, u)
			continue
		}
		used[account]++
		for _, p := range n.Change.Places {
			places[n.Response.CampaignID][p.Key]++
		}
		within = append(within, u)
	}
	return within, beyond, nil
}

const (
	// touchAccount writes the row as it is, so that also a transaction with an older snapshot (REPEATABLE READ) can't miss others'.
	touchAccount = "UPDATE formsvc_accounts SET campaigns = campaigns WHERE id = $1"
	sumOfAccount = "SELECT CAST(coalesce(sum(n.responses), 0) AS BIGINT) FROM formsvc_campaigns AS c" +
		" JOIN formsvc_counters AS n ON n.campaign_id = c.id WHERE c.account_id = $1"
)

// responsesOf returns how many responses an account has, and keeps other calls from returning until the transaction of c ends.
func (k *Config) responsesOf(ctx context.Context, c bun.IConn, account formsvc.ID) (n int, err error) {
	id := k.Dialect.arg(account)
	if k.Dialect.ManyWriters {
		if _, err := c.ExecContext(ctx, touchAccount, id); err != nil {
			return 0, err
		}
	}
	return n, c.QueryRowContext(ctx, sumOfAccount, id).Scan(&n)
}
