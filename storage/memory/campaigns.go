package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateCampaign implements [formsvc.CampaignStore].
func (s *Store) CreateCampaign(ctx context.Context, c formsvc.Campaign, change formsvc.Change) error {
	if err := checkCampaign(&c); err != nil {
		return err
	}
	var a *account
	return s.write(ctx, &change, func() (err error) {
		if a, err = s.account(c.AccountID); err == nil && change.Limit > 0 && len(a.campaigns.ids) >= change.Limit {
			err = formsvc.ErrLimit
		}
		return err
	}, func() error {
		return a.campaigns.add(c.ID, &campaign{Campaign: copyCampaign(&c)})
	})
}

// UpdateCampaign implements [formsvc.CampaignStore].
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

// Campaign implements [formsvc.CampaignStore].
func (s *Store) Campaign(ctx context.Context, key formsvc.CampaignKey) (formsvc.Campaign, error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.Campaign{}, err
	}
	defer s.mu.Unlock()
	row, err := s.campaign(key)
	if err != nil {
		return formsvc.Campaign{}, err
	}
	return copyCampaign(&row.Campaign), nil
}

// Campaigns implements [formsvc.CampaignStore].
func (s *Store) Campaigns(ctx context.Context, q formsvc.CampaignQuery) (formsvc.Page[formsvc.Campaign], error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.Page[formsvc.Campaign]{}, err
	}
	defer s.mu.Unlock()
	a, err := s.account(q.AccountID)
	if err != nil {
		return formsvc.Page[formsvc.Campaign]{}, nil // an unknown account has none
	}
	var match func(*campaign) bool
	if finds := q.Finds(); finds != nil {
		match = func(row *campaign) bool { return finds(row.Title) }
	}
	list := page(&a.campaigns, q.Page, false, match, func(row *campaign) formsvc.Campaign {
		return copyCampaign(&row.Campaign)
	})
	return cutAt(list, q.Page, (*formsvc.Campaign).Size), nil
}

// campaign returns a campaign of an account. The caller holds s.mu.
func (s *Store) campaign(key formsvc.CampaignKey) (*campaign, error) {
	a, err := s.account(key.AccountID)
	if err != nil {
		return nil, err
	}
	c, ok := a.campaigns.get(key.ID)
	if !ok {
		return nil, formsvc.ErrNotFound
	}
	return c, nil
}

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
