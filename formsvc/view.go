package formsvc

import (
	"context"
	"slices"
)

// A View is a named view of the console's table of a campaign's responses.
type View struct {
	Name  string `json:"name"`  // unique in its campaign, 1 to 60 characters
	Query string `json:"query"` // of the table's address, at most 2,000 bytes
}

// Limits of the views of a campaign.
const (
	maxViews     = 20
	maxViewName  = 60
	maxViewQuery = 2_000
)

// SaveView adds a view to a campaign, or replaces the one of that name. The campaign keeps its version, and no event is raised.
// It fails with a *[ValidationError], with [ErrNotFound] for an unknown campaign, and with a *[LimitError] for a 21st view.
func (c Campaigns) SaveView(ctx context.Context, key CampaignKey, view View) (err error) {
	defer wrap(&err, "save view")
	v := c.s.faults()
	v.checkTitle("/name", view.Name, maxViewName)
	if v.checkLine("/query", view.Query, maxViewQuery); len(view.Query) > maxViewQuery && len(v.Fields) == 0 {
		v.add("/query", "too_long", "must have at most %d bytes", maxViewQuery)
	}
	if err := v.err(); err != nil {
		return err
	}
	return c.setView(ctx, key, view.Name, view)
}

// DeleteView removes a view of a campaign, as SaveView adds one. It fails with [ErrNotFound] also if there is no view of that name.
func (c Campaigns) DeleteView(ctx context.Context, key CampaignKey, name string) (err error) {
	defer wrap(&err, "delete view")
	return c.setView(ctx, key, name)
}

// setView replaces the view of that name, or removes it, or adds one.
func (c Campaigns) setView(ctx context.Context, key CampaignKey, name string, with ...View) error {
	_, err := c.s.store.UpdateCampaign(ctx, key, func(campaign *Campaign) (Change, error) {
		campaign.Views = slices.Clone(campaign.Views)
		i := slices.IndexFunc(campaign.Views, func(v View) bool { return v.Name == name })
		switch {
		case i >= 0:
			campaign.Views = slices.Replace(campaign.Views, i, i+1, with...)
		case with == nil:
			return Change{}, ErrNotFound
		case len(campaign.Views) >= maxViews:
			return Change{}, &LimitError{Kind: "views", Limit: maxViews}
		default:
			campaign.Views = append(campaign.Views, with...)
		}
		return Change{}, nil
	})
	return err
}
