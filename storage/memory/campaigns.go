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
	return s.write(ctx, func() (formsvc.Change, error) {
		_, err := s.account(c.AccountID)
		if err == nil && change.Limit > 0 && s.campaigns.count(func(o *campaign) bool { return o.AccountID == c.AccountID }) >= change.Limit {
			err = formsvc.ErrLimit
		}
		if _, taken := s.byForm(c.FormToken); err == nil && taken == nil {
			err = formsvc.ErrConflict
		}
		return change, err
	}, func() error {
		return s.campaigns.add(c.ID, &campaign{Campaign: c})
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
		if _, taken := s.byForm(c.FormToken); c.FormToken != row.FormToken && taken == nil {
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
		s.campaigns.remove(key.ID)
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
	return read(ctx, s, s.byForm, token, (*campaign).copy)
}

// byForm returns the campaign with a token. The caller holds s.mu.
func (s *Store) byForm(token string) (*campaign, error) {
	return s.campaigns.first(func(c *campaign) bool { return token != "" && c.FormToken == token })
}

// Campaigns implements [formsvc.Store].
func (s *Store) Campaigns(ctx context.Context, q formsvc.CampaignQuery) (formsvc.Page[formsvc.Campaign], error) {
	finds := q.Finds()
	match := func(c *campaign) bool { return c.AccountID == q.AccountID && (finds == nil || finds(c.Title)) }
	return locked(ctx, s, func() (formsvc.Page[formsvc.Campaign], error) {
		return cutAt(page(&s.campaigns, q.Page, false, match, (*campaign).copy), q.Page, (*formsvc.Campaign).Size), nil
	})
}

// campaign returns a campaign of an account. The caller holds s.mu.
func (s *Store) campaign(key formsvc.CampaignKey) (*campaign, error) {
	c, err := s.campaigns.get(key.ID)
	if err == nil && c.AccountID != key.AccountID {
		err = formsvc.ErrNotFound
	}
	return c, err
}

func (c *campaign) copy() formsvc.Campaign { return copyOf(&c.Campaign) }
