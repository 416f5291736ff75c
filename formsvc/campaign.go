package formsvc

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// CampaignStatus says whether a campaign takes responses.
type CampaignStatus string

// The statuses of a campaign.
const (
	CampaignOpen   CampaignStatus = "open"   // takes responses between OpensAt and ClosesAt; the default
	CampaignClosed CampaignStatus = "closed" // takes none
)

// A Campaign is a form that responses are submitted to: it is open at certain hours,
// and asks what its modules say; without modules it takes any answers.
type Campaign struct {
	ID        ID
	AccountID ID
	CampaignInput
	ResponseCount int64
	Version       int64 // 1 for a new campaign, one more with every change
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// CampaignInput is the part of a campaign that its owner decides.
type CampaignInput struct {
	Title       string            // 1 to 500 characters
	Description string            // at most 10,000 characters
	Status      CampaignStatus    // "" means CampaignOpen
	OpensAt     time.Time         // zero: at once
	ClosesAt    time.Time         // zero: never; after OpensAt otherwise
	Modules     []Module          // none: any module name is accepted
	Metadata    map[string]string // at most 100 entries
}

// CampaignKey names one campaign of one account.
type CampaignKey struct{ AccountID, ID ID }

// CampaignQuery chooses campaigns of one account.
type CampaignQuery struct {
	AccountID ID
	// Search leaves only campaigns whose title contains it, whether in capitals or
	// not; "" leaves all. It costs a look at every title of the account.
	Search string
	Page   PageQuery
}

// Finds returns what Search means, for stores: whether a campaign of that title is
// in the list. It is nil when all are.
func (q *CampaignQuery) Finds() func(title string) bool {
	if q.Search == "" {
		return nil
	}
	// Up first: some letters have two small forms, such as the sigma at the end of a
	// word, but one capital.
	fold := func(s string) string { return strings.ToLower(strings.ToUpper(s)) }
	wanted := fold(q.Search)
	return func(title string) bool { return strings.Contains(fold(title), wanted) }
}

// accepts reports whether a new response may be submitted at that time.
func (c *Campaign) accepts(now time.Time) bool {
	return c.Status == CampaignOpen &&
		(c.OpensAt.IsZero() || !now.Before(c.OpensAt)) &&
		(c.ClosesAt.IsZero() || now.Before(c.ClosesAt))
}

// Campaigns makes, changes and lists campaigns. It is safe for concurrent use.
type Campaigns struct{ s *core }

// Create makes a campaign. It fails with a *[ValidationError] that names every
// bad member, and with [ErrNotFound] when there is no such account.
func (c Campaigns) Create(ctx context.Context, account ID, in CampaignInput) (_ Campaign, err error) {
	defer c.s.span(&ctx, "Campaigns.Create").end(&err)
	if in, err = in.checked(); err != nil {
		return Campaign{}, err
	}
	now := c.s.now()
	campaign := Campaign{
		ID: c.s.newID(now), AccountID: account, CampaignInput: in, Version: 1, CreatedAt: now, UpdatedAt: now,
	}
	if err := c.s.store.CreateCampaign(ctx, campaign, Change{Idempotency: c.s.record(&campaign)}); err != nil {
		return Campaign{}, fmt.Errorf("formsvc: create campaign: %w", err)
	}
	return campaign, nil
}

// Replace sets everything the owner decides: what in leaves at its zero value
// returns to its default. ifVersion names the version the caller has seen, and
// the call fails with [ErrStale] when the campaign is another by now; 0 means
// any. It fails with [ErrNotFound] and *[ValidationError] as Create does.
func (c Campaigns) Replace(ctx context.Context, key CampaignKey, in CampaignInput, ifVersion int64) (_ Campaign, err error) {
	defer c.s.span(&ctx, "Campaigns.Replace").end(&err)
	if in, err = in.checked(); err != nil {
		return Campaign{}, err
	}
	campaign, err := c.s.store.UpdateCampaign(ctx, key, func(campaign *Campaign) error {
		if ifVersion != 0 && campaign.Version != ifVersion {
			return ErrStale
		}
		campaign.CampaignInput = in
		campaign.Version++
		campaign.UpdatedAt = c.s.now()
		return nil
	})
	if err != nil {
		return Campaign{}, fmt.Errorf("formsvc: replace campaign: %w", err)
	}
	c.s.campaigns.drop(key) // not put: the caller may change what is returned here
	return campaign, nil
}

// Get returns a campaign, or [ErrNotFound].
func (c Campaigns) Get(ctx context.Context, key CampaignKey) (_ Campaign, err error) {
	defer c.s.span(&ctx, "Campaigns.Get").end(&err)
	campaign, err := c.s.store.Campaign(ctx, key)
	if err != nil {
		return Campaign{}, fmt.Errorf("formsvc: campaign: %w", err)
	}
	return campaign, nil
}

// List returns a page of the account's campaigns.
func (c Campaigns) List(ctx context.Context, q CampaignQuery) (_ Page[Campaign], err error) {
	defer c.s.span(&ctx, "Campaigns.List").end(&err)
	q.Page = q.Page.Clamped()
	page, err := c.s.store.Campaigns(ctx, q)
	if err != nil {
		return Page[Campaign]{}, fmt.Errorf("formsvc: campaigns: %w", err)
	}
	return page, nil
}
