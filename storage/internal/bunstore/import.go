package bunstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// ImportResponses implements formsvc.ResponseStore.
func (s *Store) ImportResponses(
	ctx context.Context, key formsvc.CampaignKey, campaignVersion int64, list []formsvc.NewResponse, limit int,
) (added int, err error) {
	err = s.ready(ctx, key.AccountID, key.ID)
	creations := make([]*Creation, len(list))
	references, ids := make([]string, len(list)), make([]formsvc.ID, len(list))
	for i := range list {
		n := &Creation{Response: list[i].Response, CampaignVersion: campaignVersion, Change: formsvc.Change{Events: list[i].Events, Places: list[i].Places}}
		n.Response.AccountID, n.Response.CampaignID = key.AccountID, key.ID
		err = cmp.Or(err, checkIDs(n.Response.ID), n.check())
		creations[i], references[i], ids[i] = n, n.Response.Reference, n.Response.ID
	}
	if err != nil || len(list) == 0 {
		return 0, err
	}
	err = s.write(ctx, nil, nil, func(ctx context.Context, c *Tx) error {
		var taken []struct {
			ID        ID
			Reference string
		}
		if err := s.build.NewSelect().Conn(c).TableExpr("formsvc_responses AS r").Column("r.id", "r.reference").
			Where("r.account_id = ? AND r.reference IN (?)", ID(key.AccountID), bun.List(references)).
			WhereOr("r.campaign_id = ? AND r.id IN (?)", ID(key.ID), bun.List(sortedIDs(ids))).Scan(ctx, &taken); err != nil {
			return err
		}
		known, seen := make(map[formsvc.ID]bool), make(map[string]bool)
		for _, r := range taken {
			known[formsvc.ID(r.ID)], seen[r.Reference] = true, true
		}
		fresh := slices.DeleteFunc(slices.Clone(creations), func(n *Creation) bool {
			old := known[n.Response.ID] || seen[n.Response.Reference]
			known[n.Response.ID], seen[n.Response.Reference] = true, true
			return old
		})
		if added = len(fresh); added == 0 {
			return nil
		}
		if limit > 0 {
			if n, err := s.config.responsesOf(ctx, c, key.AccountID); err != nil || n+len(fresh) > limit {
				return cmp.Or(err, formsvc.ErrLimit)
			}
		}
		written, wake, err := s.backend.CreateResponses(ctx, c, fresh)
		c.wake = wake
		if i := slices.Index(written, false); err == nil && i >= 0 {
			return s.config.refusal(ctx, c, fresh[i])
		}
		if err == nil {
			err = s.config.take(ctx, c, fresh)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return added, nil
}
