package memory

import (
	"context"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateResponse implements [formsvc.ResponseStore].
func (s *Store) CreateResponse(
	ctx context.Context, r formsvc.Response, campaignVersion int64, change formsvc.Change,
) error {
	if err := checkResponse(&r); err != nil {
		return err
	}
	var c *campaign
	return s.write(ctx, &change, func() (err error) {
		c, err = s.campaign(formsvc.CampaignKey{AccountID: r.AccountID, ID: r.CampaignID})
		switch {
		case err != nil:
			return err
		case c.Version != campaignVersion:
			return formsvc.ErrStale
		case s.accounts.rows[r.AccountID].references[r.Reference]:
			return formsvc.ErrConflict
		}
		return nil
	}, func() error {
		if err := c.responses.add(r.ID, &response{Response: copyResponse(&r)}); err != nil {
			return err
		}
		s.accounts.rows[r.AccountID].references[r.Reference] = true
		c.ResponseCount++
		return nil
	})
}

// UpdateResponse implements [formsvc.ResponseStore].
func (s *Store) UpdateResponse(
	ctx context.Context, key formsvc.ResponseKey, decide func(*formsvc.Response) (formsvc.Change, error),
) (formsvc.Response, error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.Response{}, err
	}
	defer s.mu.Unlock()
	row, err := s.response(key)
	if err != nil {
		return formsvc.Response{}, err
	}
	r := row.Response
	change, err := decide(&r)
	if err != nil {
		return formsvc.Response{}, err
	}
	if r.Version == row.Version {
		return row.Response, nil
	}
	if err := checkResponse(&r); err != nil {
		return formsvc.Response{}, err
	}
	if err := s.admit(&change); err != nil {
		return formsvc.Response{}, err
	}
	row.Response = copyResponse(&r)
	s.apply(&change)
	return row.Response, nil
}

// Response implements [formsvc.ResponseStore].
func (s *Store) Response(ctx context.Context, key formsvc.ResponseKey) (formsvc.Response, error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.Response{}, err
	}
	defer s.mu.Unlock()
	row, err := s.response(key)
	if err != nil {
		return formsvc.Response{}, err
	}
	return row.Response, nil
}

// Responses implements [formsvc.ResponseStore].
func (s *Store) Responses(ctx context.Context, q formsvc.ResponseQuery) (formsvc.Page[formsvc.Response], error) {
	texts := append([]string{q.Filter.Email, q.Filter.Reference}, q.Filter.Status...)
	if err := formsvc.CheckText(texts...); err != nil {
		return formsvc.Page[formsvc.Response]{}, err
	}
	if err := s.enter(ctx); err != nil {
		return formsvc.Page[formsvc.Response]{}, err
	}
	defer s.mu.Unlock()
	c, err := s.campaign(formsvc.CampaignKey{AccountID: q.AccountID, ID: q.CampaignID})
	if err != nil {
		return formsvc.Page[formsvc.Response]{}, err
	}
	var match func(*response) bool // without a filter the total is a counter
	if !q.Filter.IsZero() {
		match = func(row *response) bool { return q.Filter.Match(&row.Response) }
	}
	out := func(row *response) formsvc.Response { return copyResponse(&row.Response) }
	return cutAt(page(&c.responses, q.Page, q.NoTotal, match, out), q.Page, (*formsvc.Response).Size), nil
}

// DeleteResponse implements [formsvc.ResponseStore].
func (s *Store) DeleteResponse(
	ctx context.Context, key formsvc.ResponseKey, decide func(*formsvc.Response) (formsvc.Change, error),
) ([]formsvc.ID, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	row, err := s.response(key)
	if err != nil {
		return nil, err
	}
	r := row.Response
	change, err := decided(&r, decide)
	if err != nil {
		return nil, err
	}
	if err := s.admit(&change); err != nil {
		return nil, err
	}
	s.remove(row)
	s.apply(&change)
	return row.files.ids, nil
}

// remove removes a response with its files, comments and signatures, and updates the
// counters. The caller holds s.mu.
func (s *Store) remove(row *response) {
	for _, id := range row.files.ids {
		s.files.remove(id)
	}
	for _, id := range row.comments.ids {
		s.comments.remove(id)
	}
	for _, id := range row.signatures.ids {
		s.signed.remove(id)
	}
	a := s.accounts.rows[row.AccountID]
	delete(a.references, row.Reference)
	c := a.campaigns.rows[row.CampaignID]
	c.responses.remove(row.ID)
	c.ResponseCount--
}

// response returns a response of a campaign of an account. The caller holds s.mu.
func (s *Store) response(key formsvc.ResponseKey) (*response, error) {
	c, err := s.campaign(formsvc.CampaignKey{AccountID: key.AccountID, ID: key.CampaignID})
	if err != nil {
		return nil, err
	}
	r, ok := c.responses.get(key.ID)
	if !ok {
		return nil, formsvc.ErrNotFound
	}
	return r, nil
}

func checkResponse(r *formsvc.Response) error {
	return formsvc.CheckText(
		string(r.ID), string(r.AccountID), string(r.CampaignID), r.Reference, r.Status,
		r.User.Email, r.User.FirstName, r.User.LastName, r.Answers.JSON(),
	)
}

func copyResponse(of *formsvc.Response) formsvc.Response {
	r := *of
	r.CreatedAt, r.UpdatedAt, r.CompletedAt = kept(r.CreatedAt), kept(r.UpdatedAt), kept(r.CompletedAt)
	return r
}
