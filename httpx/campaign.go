package httpx

import (
	"net/http"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

func (c *call) campaignKey() formsvc.CampaignKey {
	return formsvc.CampaignKey{AccountID: c.who.AccountID, ID: c.ids[0]}
}

func (h *Handler) listCampaigns(c *call) error {
	return serveList(c, pageParams+" search", func(q *listQuery) (formsvc.Page[formsvc.Campaign], error) {
		return h.svc.Campaigns.List(c.ctx(), formsvc.CampaignQuery{
			AccountID: c.who.AccountID, Search: q.search, Page: q.page,
		})
	}, func(b []byte, x *formsvc.Campaign) ([]byte, formsvc.ID) {
		return h.appendCampaign(b, x), x.ID
	})
}

func (h *Handler) createCampaign(c *call) error {
	in, err := c.body.CampaignInput(false)
	if err != nil {
		return err
	}
	campaign, err := once(c, func(svc *formsvc.Service) (formsvc.Campaign, error) {
		return svc.Campaigns.Create(c.ctx(), c.who.AccountID, in)
	})
	if err != nil {
		return err
	}
	c.setHeader("Location", h.location(c, campaign.ID))
	return c.sendCampaignDone(http.StatusCreated, &campaign)
}

// sendCampaignDone replies to a POST with a campaign.
func (c *call) sendCampaignDone(status int, campaign *formsvc.Campaign) error {
	c.setHeader("Etag", campaignTag(campaign.Version, campaign.ResponseCount))
	c.out = c.h.appendCampaign(c.out, campaign)
	return c.sendDone(status)
}

func (h *Handler) getCampaign(c *call) error {
	return c.sendCampaign(h.svc.Campaigns.Get(c.ctx(), c.campaignKey()))
}

func (h *Handler) replaceCampaign(c *call) error {
	in, err := c.body.CampaignInput(true)
	if err != nil {
		return err
	}
	in.IfVersion, err = c.ifVersion(true, (*Handler).campaignVersion)
	if err != nil {
		return err
	}
	return c.sendCampaign(h.svc.Campaigns.Replace(c.ctx(), c.campaignKey(), in))
}

// rotateForm gives the campaign's form another address.
func (h *Handler) rotateForm(c *call) error {
	if err := c.body.Nothing(); err != nil {
		return err
	}
	campaign, err := once(c, func(svc *formsvc.Service) (formsvc.Campaign, error) {
		return svc.Campaigns.RotateForm(c.ctx(), c.campaignKey())
	})
	if err != nil {
		return err
	}
	return c.sendCampaignDone(http.StatusOK, &campaign)
}

func (h *Handler) deleteCampaign(c *call) error {
	version, err := c.ifVersion(true, (*Handler).campaignVersion)
	if err != nil {
		return err
	}
	return c.sendNoContent(h.service(c).Campaigns.Delete(c.ctx(), c.campaignKey(), &formsvc.DeleteOptions{IfVersion: version}))
}

func (h *Handler) campaignVersion(c *call) (int64, error) {
	campaign, err := h.svc.Campaigns.Get(c.ctx(), c.campaignKey())
	return campaign.Version, err
}

func (c *call) sendCampaign(campaign formsvc.Campaign, err error) error {
	if err != nil {
		return err
	}
	c.out = c.h.appendCampaign(c.out, &campaign)
	return c.sendRecord(campaignTag(campaign.Version, campaign.ResponseCount))
}

// A campaignReply is a campaign as clients get it. All fields but workflow and timeZone are always there, so that clients can change a campaign that they
// read and send it back.
type campaignReply struct {
	ID            formsvc.ID             `json:"uuid"`
	Title         string                 `json:"title"`
	Description   string                 `json:"description"`
	Status        formsvc.CampaignStatus `json:"status"`
	OpensAt       time.Time              `json:"opensAt"`
	ClosesAt      time.Time              `json:"closesAt"`
	RequireEmail  bool                   `json:"requireEmail"`
	RequireName   bool                   `json:"requireName"`
	Modules       []formsvc.Module       `json:"modules"`
	Metadata      map[string]string      `json:"metadata"`
	Form          formReply              `json:"form"`
	Workflow      string                 `json:"workflow,omitzero"`
	TimeZone      string                 `json:"timeZone,omitzero"`
	ResponseCount int64                  `json:"responseCount"`
	CreatedAt     time.Time              `json:"createdAt"`
	UpdatedAt     time.Time              `json:"updatedAt"`
}

// A formReply is a form. Its address is null if it has none yet, or if the address of the service isn't known.
type formReply struct {
	formsvc.Form `json:",inline"`

	Token *string `json:"token"`
	URL   *string `json:"url"`
}

// appendCampaign appends the campaign as clients get it.
func (h *Handler) appendCampaign(b []byte, c *formsvc.Campaign) []byte {
	form := formReply{Form: c.Form}
	if c.FormToken != "" {
		form.Token = &c.FormToken
		if h.formsURL != "" {
			form.URL = new(h.formsURL + c.FormToken)
		}
	}
	return wire.AppendReply(b, campaignReply{
		c.ID, c.Title, c.Description, c.Status, c.OpensAt, c.ClosesAt, !c.EmailOptional, c.RequireName, c.Modules, c.Metadata, form, c.Workflow, c.TimeZone,
		c.ResponseCount, c.CreatedAt, c.UpdatedAt,
	})
}
