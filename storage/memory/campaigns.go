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
		return change, err
	}, func() error {
		return a.campaigns.add(c.ID, &campaign{Campaign: copyCampaign(&c)})
	})
}

// UpdateCampaign implements [formsvc.Store].
func (s *Store) UpdateCampaign(
	ctx context.Context, key formsvc.CampaignKey, decide func(*formsvc.Campaign) error,
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
	if err := decide(&c); err != nil {
		return formsvc.Campaign{}, err
	}
	if c.Version == row.Version {
		return copyCampaign(&row.Campaign), nil
	}
	if err := checkCampaign(&c); err != nil {
		return formsvc.Campaign{}, err
	}
	row.Campaign = copyCampaign(&c)
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
	return formsvc.CheckText(append(c.Texts(), string(c.ID), string(c.AccountID))...)
}

func copyCampaign(campaign *formsvc.Campaign) formsvc.Campaign {
	c := *campaign
	c.Modules = slices.Clone(c.Modules)
	for i := range c.Modules {
		c.Modules[i].Options = slices.Clone(c.Modules[i].Options)
	}
	c.Metadata = maps.Clone(c.Metadata)
	c.OpensAt, c.ClosesAt = kept(c.OpensAt), kept(c.ClosesAt)
	c.CreatedAt, c.UpdatedAt = kept(c.CreatedAt), kept(c.UpdatedAt)
	return c
}
