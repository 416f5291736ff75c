package postgres

import (
	"context"
	"errors"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// selectResponses reads many responses. The subquery has at most one row and runs for
// each key, whatever the statistics, so that no plan scans the table.
const selectResponses = `
SELECT ` + bunstore.ResponseColumns + `, k.n - 1
FROM unnest($1::text[]::uuid[], $2::text[]::uuid[], $3::text[]::uuid[]) WITH ORDINALITY AS k(campaign_id, id, account_id, n),
LATERAL (
  SELECT * FROM formsvc_responses AS r WHERE r.campaign_id = k.campaign_id AND r.id = k.id AND r.account_id = k.account_id
  LIMIT 1
) AS r`

// readTogether reads a group of responses in one round trip.
func readTogether(ctx context.Context, c bun.IConn, group []*bunstore.Read) (err error) {
	n := len(group)
	campaigns, ids, accounts := texts(n), texts(n), texts(n)
	for i, r := range group {
		campaigns[i], ids[i], accounts[i] = string(r.Key.CampaignID), string(r.Key.ID), string(r.Key.AccountID)
	}
	rows, err := c.QueryContext(ctx, selectResponses, campaigns, ids, accounts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := bunstore.ScanRead(rows, group); err != nil {
			return err
		}
	}
	return rows.Err()
}
