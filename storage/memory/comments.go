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
	return s.write(ctx, func() (formsvc.Change, error) {
		_, err := s.response(formsvc.ResponseKey{AccountID: c.AccountID, CampaignID: c.CampaignID, ID: c.ResponseID})
		return change, err
	}, func() error { return s.comments.add(c.ID, &c) })
}

// Comments implements [formsvc.Store].
func (s *Store) Comments(
	ctx context.Context, key formsvc.ResponseKey, q formsvc.PageQuery,
) (formsvc.Page[formsvc.Comment], error) {
	return read(ctx, s, s.response, key, func(r *response) formsvc.Page[formsvc.Comment] {
		of := func(c *formsvc.Comment) bool { return r.has(c.CampaignID, c.ResponseID) }
		return cutAt(page(&s.comments, q, false, of, copyOf), q, (*formsvc.Comment).Size)
	})
}
