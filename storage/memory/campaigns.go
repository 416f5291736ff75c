package memory

import (
	"context"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateCampaign implements [formsvc.Store].
func (s *Store) CreateCampaign(ctx context.Context, c formsvc.Campaign, change formsvc.Change) error {
	c, err := stored(&c)
	if err != nil {
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
		return a.campaigns.add(c.ID, &campaign{Campaign: c})
	})
}

// UpdateCampaign implements [formsvc.Store].
func (s *Store) UpdateCampaign(
	ctx context.Context, key formsvc.CampaignKey, decide func(*formsvc.Campaign) (formsvc.Change, error),
) (formsvc.Campaign, error) {
	var row *campaign
	var c formsvc.Campaign
	err := s.write(ctx, func() (change formsvc.Change, err error) {
		if row, err = s.campaign(key); err != nil {
			return change, err
		}
		c = row.copy()
		if change, err = decide(&c); err != nil {
			return change, err
		}
		if views := c.Views; c.Version == row.Version {
			c = row.copy()
			c.Views = views
		}
		if c.FormToken != row.FormToken && s.byForm(c.FormToken) != nil {
			return change, formsvc.ErrConflict
		}
		c, err = stored(&c)
		return change, err
	}, func() error {
		row.Campaign = c
		c = row.copy()
		return nil
	})
	return c, err
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

func (c *campaign) copy() formsvc.Campaign { return copyOf(&c.Campaign) }
