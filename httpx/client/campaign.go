package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// CampaignInput is the part of a campaign that its owner sets. Limits are those of [formsvc.CampaignInput].
type CampaignInput struct {
	Title        string                 `json:"title"`
	Description  string                 `json:"description,omitzero"`
	Status       formsvc.CampaignStatus `json:"status,omitzero"`       // "" means open
	OpensAt      time.Time              `json:"opensAt,omitzero"`      // zero: at once
	ClosesAt     time.Time              `json:"closesAt,omitzero"`     // zero: never
	RequireEmail *bool                  `json:"requireEmail,omitzero"` // nil means true
	RequireName  bool                   `json:"requireName,omitzero"`
	Modules      []formsvc.Module       `json:"modules,omitempty"` // none: any answers are accepted
	Metadata     map[string]string      `json:"metadata,omitempty"`
	Form         Form                   `json:"form,omitzero"`
	Workflow     string                 `json:"workflow,omitzero"` // a name that the service's operator has defined
	TimeZone     string                 `json:"timeZone,omitzero"` // see [formsvc.CampaignInput]
}

// A Form is how a campaign is published. Token and URL are the service's: it ignores others.
type Form struct {
	formsvc.Form

	Token string `json:"token,omitzero"` // "" until the form is first enabled
	URL   string `json:"url,omitzero"`   // the page's address; its path if the service doesn't know its own address
}

// A Campaign is a form that responses are submitted to.
type Campaign struct {
	UUID string `json:"uuid"`
	CampaignInput

	ResponseCount int64     `json:"responseCount"`
	CreatedAt     time.Time `json:"createdAt"`
	UpdatedAt     time.Time `json:"updatedAt"`
	ETag          string    `json:"-"` // its version, for [IfMatch]; "" in lists
}

func (c *Campaign) setETag(etag string) { c.ETag = etag }

// CampaignQuery chooses campaigns.
type CampaignQuery struct {
	PageQuery

	Search string // campaigns whose title contains it, ignoring case and accents
}

func (q *CampaignQuery) values() url.Values {
	v := q.PageQuery.values()
	set(v, "search", q.Search)
	return v
}

// Campaigns creates, changes and lists campaigns.
type Campaigns struct{ c *Client }

const campaigns = "/v1/campaigns"

// List returns a page of campaigns, newest first. nil means the first page of all.
func (s Campaigns) List(ctx context.Context, q *CampaignQuery, opts ...CallOption) (Page[Campaign], error) {
	return get[Page[Campaign]](ctx, s.c, campaigns, or(q).values(), opts)
}

// All returns all campaigns that q chooses, page after page. An error ends them.
func (s Campaigns) All(ctx context.Context, q *CampaignQuery, opts ...CallOption) iter.Seq2[Campaign, error] {
	return all[Campaign](ctx, s.c, campaigns, or(q).values(), opts)
}

// Get returns a campaign.
func (s Campaigns) Get(ctx context.Context, id string, opts ...CallOption) (Campaign, error) {
	return get[Campaign](ctx, s.c, campaigns+segment(id), nil, opts)
}

// Create creates a campaign.
func (s Campaigns) Create(ctx context.Context, in CampaignInput, opts ...CallOption) (Campaign, error) {
	in.Form.Token, in.Form.URL = "", ""
	return send[Campaign](ctx, s.c, s.c.newCall(http.MethodPost, campaigns, in, opts))
}

// Replace replaces all that the owner sets: a field that is zero returns to its default. Read the campaign, change its
// CampaignInput and send that with [IfMatch], so that nobody's change is lost.
func (s Campaigns) Replace(ctx context.Context, id string, in CampaignInput, opts ...CallOption) (Campaign, error) {
	return send[Campaign](ctx, s.c, s.c.newCall(http.MethodPut, campaigns+segment(id), in, opts))
}

// Delete deletes a campaign without responses.
func (s Campaigns) Delete(ctx context.Context, id string, opts ...CallOption) error {
	_, err := s.c.do(ctx, s.c.newCall(http.MethodDelete, campaigns+segment(id), nil, opts))
	return err
}

// RotateForm gives the form a new address. The old one is no longer found.
func (s Campaigns) RotateForm(ctx context.Context, id string, opts ...CallOption) (Campaign, error) {
	return send[Campaign](ctx, s.c, s.c.newCall(http.MethodPost, campaigns+segment(id)+"/form/rotate", nil, opts))
}
