package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateCampaign implements [formsvc.Store].
func (s *Store) CreateCampaign(ctx context.Context, c formsvc.Campaign, change formsvc.Change) error {
	if err := checkCampaign(&c); err != nil {
		return err
	}
	var a *account
	return s.write(ctx, func() (_ formsvc.Change, err error) {
		if a, err = s.account(c.AccountID); err == nil && change.Limit > 0 && len(a.campaigns.ids) >= change.Limit {
			err = formsvc.ErrLimit
		}
		if err == nil && s.byForm(c.FormToken) != nil {
			err = formsvc.ErrConflict
		}
		return change, err
	}, func() error {
		return a.campaigns.add(c.ID, &campaign{Campaign: copyCampaign(&c)})
	})
}

// UpdateCampaign implements [formsvc.Store].
func (s *Store) UpdateCampaign(
	ctx context.Context, key formsvc.CampaignKey, decide func(*formsvc.Campaign) (formsvc.Change, error),
) (formsvc.Campaign, error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.Campaign{}, err
	}
	defer s.mu.Unlock()
	row, err := s.campaign(key)
	if err != nil {
		return formsvc.Campaign{}, err
	}
	c := copyCampaign(&row.Campaign)
	change, err := decide(&c)
	if err == nil {
		err = s.admit(&change)
	}
	if err == nil && c.Version != row.Version {
		if err = checkCampaign(&c); err == nil && c.FormToken != row.FormToken && s.byForm(c.FormToken) != nil {
			err = formsvc.ErrConflict
		}
	}
	if err != nil {
		return formsvc.Campaign{}, err
	}
	s.apply(&change)
	if c.Version != row.Version {
		row.Campaign = copyCampaign(&c)
	}
	return copyCampaign(&row.Campaign), nil
}

// DeleteCampaign implements [formsvc.Store].
func (s *Store) DeleteCampaign(
	ctx context.Context, key formsvc.CampaignKey, decide func(*formsvc.Campaign) (formsvc.Change, error),
) error {
	return s.write(ctx, func() (change formsvc.Change, err error) {
		row, err := s.campaign(key)
		switch {
		case err != nil:
			return change, err
		case row.ResponseCount > 0:
			return change, formsvc.ErrCampaignNotEmpty
		}
		return decided(new(row.copy()), decide)
	}, func() error {
		s.accounts.rows[key.AccountID].campaigns.remove(key.ID)
		return nil
	})
}

// Campaign implements [formsvc.Store].
func (s *Store) Campaign(ctx context.Context, key formsvc.CampaignKey) (formsvc.Campaign, error) {
	return read(ctx, s, s.campaign, key, (*campaign).copy)
}

// CampaignByForm implements [formsvc.Store].
func (s *Store) CampaignByForm(ctx context.Context, token string) (formsvc.Campaign, error) {
	if err := formsvc.CheckText(token); err != nil {
		return formsvc.Campaign{}, err
	}
	return read(ctx, s, func(token string) (*campaign, error) {
		if c := s.byForm(token); c != nil {
			return c, nil
		}
		return nil, formsvc.ErrNotFound
	}, token, (*campaign).copy)
}

// byForm returns the campaign with a token, or nil. The caller holds s.mu.
func (s *Store) byForm(token string) *campaign {
	for _, a := range s.accounts.rows {
		for _, c := range a.campaigns.rows {
			if token != "" && c.FormToken == token {
				return c
			}
		}
	}
	return nil
}

// Campaigns implements [formsvc.Store].
func (s *Store) Campaigns(ctx context.Context, q formsvc.CampaignQuery) (formsvc.Page[formsvc.Campaign], error) {
	return read(ctx, s, s.accountOrNone, q.AccountID, func(a *account) formsvc.Page[formsvc.Campaign] {
		var match func(*campaign) bool
		if finds := q.Finds(); finds != nil {
			match = func(row *campaign) bool { return finds(row.Title) }
		}
		return cutAt(page(&a.campaigns, q.Page, false, match, (*campaign).copy), q.Page, (*formsvc.Campaign).Size)
	})
}

// campaign returns a campaign of an account. The caller holds s.mu.
func (s *Store) campaign(key formsvc.CampaignKey) (*campaign, error) {
	a, err := s.account(key.AccountID)
	if err != nil {
		return nil, err
	}
	return a.campaigns.get(key.ID)
}

func (c *campaign) copy() formsvc.Campaign { return copyCampaign(&c.Campaign) }

func checkCampaign(c *formsvc.Campaign) error {
	return formsvc.CheckText(append(c.Texts(), string(c.ID), string(c.AccountID), c.FormToken)...)
}

func copyCampaign(campaign *formsvc.Campaign) formsvc.Campaign {
	c := *campaign
	c.Modules = slices.Clone(c.Modules)
	for i := range c.Modules {
		m := &c.Modules[i]
		m.Options = slices.Clone(m.Options)
		if m.ShowIf != nil {
			m.ShowIf = &formsvc.Condition{Module: m.ShowIf.Module, Equals: slices.Clone(m.ShowIf.Equals)}
		}
	}
	c.Form.AllowedOrigins = slices.Clone(c.Form.AllowedOrigins)
	c.Metadata = maps.Clone(c.Metadata)
	c.OpensAt, c.ClosesAt = kept(c.OpensAt), kept(c.ClosesAt)
	c.CreatedAt, c.UpdatedAt = kept(c.CreatedAt), kept(c.UpdatedAt)
	return c
}
