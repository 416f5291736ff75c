package httpx

import (
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

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
