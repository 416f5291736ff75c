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
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	c, err := s.campaign(formsvc.CampaignKey{AccountID: r.AccountID, ID: r.CampaignID})
	if err != nil {
		return err
	}
	a := s.accounts.rows[r.AccountID]
	switch {
	case c.Version != campaignVersion:
		return formsvc.ErrStale
	case a.references[r.Reference]:
		return formsvc.ErrConflict
	}
	if err := s.checkEvents(change.Events); err != nil {
		return err
	}
	if err := c.responses.add(r.ID, new(copyResponse(&r))); err != nil {
		return err
	}
	a.references[r.Reference] = true
	c.ResponseCount++
	s.raise(change.Events)
	return nil
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
	r := *row
	change, err := decide(&r)
	if err != nil {
		return formsvc.Response{}, err
	}
	if r.Version == row.Version {
		return *row, nil
	}
	if err := checkResponse(&r); err != nil {
		return formsvc.Response{}, err
	}
	if err := s.checkEvents(change.Events); err != nil {
		return formsvc.Response{}, err
	}
	*row = copyResponse(&r)
	s.raise(change.Events)
	return *row, nil
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
	return *row, nil
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
	match := q.Filter.Match
	if q.Filter.IsZero() {
		match = nil // the total is then known without looking at the responses
	}
	return page(&c.responses, q.Page, match, copyResponse), nil
}

// response returns a response of a campaign of an account. The caller holds s.mu.
func (s *Store) response(key formsvc.ResponseKey) (*formsvc.Response, error) {
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

func copyResponse(response *formsvc.Response) formsvc.Response {
	r := *response
	r.CreatedAt, r.UpdatedAt, r.CompletedAt = kept(r.CreatedAt), kept(r.UpdatedAt), kept(r.CompletedAt)
	return r
}
