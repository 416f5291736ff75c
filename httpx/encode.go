package httpx

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
)

// appendString appends s as a JSON string. It replaces invalid UTF-8, which no store returns, by U+FFFD.
func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// A campaignReply is a campaign as clients get it. All fields are always there, so that clients can change a campaign that they
// read and send it back.
type campaignReply struct {
	ID            formsvc.ID             `json:"uuid"`
	Title         string                 `json:"title"`
	Description   string                 `json:"description"`
	Status        formsvc.CampaignStatus `json:"status"`
	OpensAt       time.Time              `json:"opensAt"`
	ClosesAt      time.Time              `json:"closesAt"`
	RequireEmail  bool                   `json:"requireEmail"`
	Modules       []formsvc.Module       `json:"modules"`
	Metadata      map[string]string      `json:"metadata"`
	Form          formReply              `json:"form"`
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

// replyFormat is how replies are encoded: the same campaign always has the same bytes.
//
//nolint:gochecknoglobals // immutable
var replyFormat = json.JoinOptions(json.Deterministic(true), jsontext.AllowInvalidUTF8(true),
	json.WithMarshalers(json.MarshalToFunc(func(to *jsontext.Encoder, t time.Time) error {
		return to.WriteValue(appendTime(to.AvailableBuffer(), t))
	})))

// appendReply appends v, plain data, as JSON.
func appendReply(b []byte, v any) []byte {
	text, err := json.Marshal(v, replyFormat)
	if err != nil {
		panic(err)
	}
	return append(b, text...)
}

// appendCampaign appends the campaign as clients get it.
func (h *Handler) appendCampaign(b []byte, c *formsvc.Campaign) []byte {
	form := formReply{Form: c.Form}
	if c.FormToken != "" {
		form.Token = &c.FormToken
		if h.formsURL != "" {
			form.URL = new(h.formsURL + "/" + c.FormToken)
		}
	}
	return appendReply(b, campaignReply{
		c.ID, c.Title, c.Description, c.Status, c.OpensAt, c.ClosesAt, !c.EmailOptional, c.Modules, c.Metadata, form,
		c.ResponseCount, c.CreatedAt, c.UpdatedAt,
	})
}
