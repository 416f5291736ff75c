package bunstore

import (
	"cmp"
	"context"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

type commentRow struct {
	bun.BaseModel `bun:"table:formsvc_comments,alias:m"`

	ID         ID `bun:",pk"`
	AccountID  ID
	CampaignID ID
	ResponseID ID
	Body       string
	Author     string
	CreatedAt  int64
}

// CreateComment implements formsvc.Store.
func (s *Store) CreateComment(ctx context.Context, comment formsvc.Comment, change formsvc.Change) error {
	key := formsvc.ResponseKey{AccountID: comment.AccountID, CampaignID: comment.CampaignID, ID: comment.ResponseID}
	if err := cmp.Or(s.ready(ctx, key.AccountID, key.CampaignID, key.ID), checkIDs(comment.ID),
		formsvc.CheckText(comment.Body, comment.Author), checkChange(&change)); err != nil {
		return err
	}
	row := &commentRow{
		ID: ID(comment.ID), AccountID: ID(key.AccountID), CampaignID: ID(key.CampaignID), ResponseID: ID(key.ID),
		Body: comment.Body, Author: comment.Author, CreatedAt: micros(comment.CreatedAt),
	}
	return s.write(ctx, nil, nil, func(ctx context.Context, c *Tx) (err error) {
		if err := s.checkResponse(ctx, c, key, selectResponseID+s.lock("")); err != nil {
			return err
		}
		// Apply the change first: a repeated idempotency key takes precedence over a
		// taken identifier.
		if err = s.apply(ctx, c, &change); err == nil {
			_, err = s.build.NewInsert().Conn(c).Model(row).Exec(ctx)
		}
		return err
	})
}

// Comments implements formsvc.Store.
func (s *Store) Comments(
	ctx context.Context, key formsvc.ResponseKey, page formsvc.PageQuery,
) (formsvc.Page[formsvc.Comment], error) {
	return pageOfResponse(ctx, s, "m", key, page, func(r *commentRow) formsvc.Comment {
		return formsvc.Comment{
			ID: formsvc.ID(r.ID), AccountID: formsvc.ID(r.AccountID), CampaignID: formsvc.ID(r.CampaignID),
			ResponseID: formsvc.ID(r.ResponseID), Body: r.Body, Author: r.Author, CreatedAt: fromMicros(r.CreatedAt),
		}
	}, (*formsvc.Comment).Size)
}
