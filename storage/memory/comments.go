package memory

import (
	"context"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateComment implements [formsvc.Store].
func (s *Store) CreateComment(ctx context.Context, c formsvc.Comment, change formsvc.Change) error {
	c, err := stored(&c)
	if err != nil {
		return err
	}
	var row *response
	return s.write(ctx, func() (_ formsvc.Change, err error) {
		row, err = s.response(formsvc.ResponseKey{AccountID: c.AccountID, CampaignID: c.CampaignID, ID: c.ResponseID})
		return change, err
	}, func() error {
		if err := s.comments.add(c.ID, &c); err != nil {
			return err
		}
		return row.comments.add(c.ID, &c)
	})
}

// Comments implements [formsvc.Store].
func (s *Store) Comments(
	ctx context.Context, key formsvc.ResponseKey, q formsvc.PageQuery,
) (formsvc.Page[formsvc.Comment], error) {
	return read(ctx, s, s.response, key, func(r *response) formsvc.Page[formsvc.Comment] {
		return cutAt(page(&r.comments, q, false, nil, copyOf), q, (*formsvc.Comment).Size)
	})
}
