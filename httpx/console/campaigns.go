package console

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

type campaignsPage struct {
	Campaigns []formsvc.Campaign
	Total     int64
	Pager     pager
}

// campaigns lists the campaigns of the account.
func (v *visit) campaigns() error {
	list, err := v.svc.Campaigns.List(v.ctx(), formsvc.CampaignQuery{AccountID: v.account(), Page: v.page()})
	if err != nil {
		return err
	}
	for i := range list.Items {
		counts, err := v.svc.Responses.Counts(v.ctx(), list.Items[i].Key())
		if err != nil && !errors.Is(err, formsvc.ErrNotFound) { // deleted meanwhile
			return err
		}
		list.Items[i].ResponseCount -= counts[formsvc.StatusSpam]
	}
	return v.show(http.StatusOK, "campaigns", "Campaigns", campaignsPage{
		Campaigns: list.Items, Total: list.Total, Pager: pagerOf(v, list, func(c *formsvc.Campaign) formsvc.ID { return c.ID }),
	})
}

// A phase says whether a campaign takes responses now, and until or from when.
type phase struct {
	Open bool
	Word string
	At   time.Time // zero: not limited
}

// phaseOf returns the phase of a campaign.
func phaseOf(c *formsvc.Campaign, now time.Time) phase {
	switch {
	case c.Status != formsvc.CampaignOpen:
		return phase{Word: "closed"}
	case !c.ClosesAt.IsZero() && !now.Before(c.ClosesAt):
		return phase{false, "closed since", c.ClosesAt}
	case now.Before(c.OpensAt):
		return phase{false, "opens", c.OpensAt}
	case !c.ClosesAt.IsZero():
		return phase{true, "open until", c.ClosesAt}
	}
	return phase{Open: true, Word: "open"}
}

// switchCampaign opens or closes a campaign.
func (v *visit) switchCampaign() error {
	status := formsvc.CampaignStatus(v.field("status"))
	if err := v.change(v.version(), func(in *formsvc.CampaignInput) { in.Status = status }); err != nil {
		return err
	}
	note := "campaign-" + string(status)
	v.campaign.Status = status
	if status == formsvc.CampaignOpen && !phaseOf(&v.campaign, v.svc.Now()).Open {
		note = "campaign-times"
	}
	return v.done(nil, v.path(""), note)
}

// duplicateCampaign creates a campaign like another one, without its responses. Its form isn't published.
func (v *visit) duplicateCampaign() error {
	in := v.campaign.CampaignInput
	in.Title, in.Form.Enabled = short(500, "Copy of "+in.Title), false
	return v.addCampaign(in, v.campaign.Views, "/edit", "campaign-copied")
}

// sampleCampaign creates a campaign to try, with a published form.
func (v *visit) sampleCampaign() error {
	text, _ := templates.ReadFile("templates/start-contact.json") // embedded
	f, err := v.opened(text)
	if err != nil {
		return err
	}
	f.Description, f.Form.Enabled = "A sample: change it, or delete it.", true
	return v.addCampaign(f.CampaignInput, nil, "/share", "campaign-created")
}

func (v *visit) addCampaign(in formsvc.CampaignInput, views []formsvc.View, page, note string) error {
	campaign, _, err := once(v, func(svc *formsvc.Service) (formsvc.Campaign, error) {
		return svc.Campaigns.Create(v.ctx(), v.account(), in)
	})
	for _, view := range views {
		err = cmp.Or(err, v.svc.Campaigns.SaveView(v.ctx(), campaign.Key(), view))
	}
	return v.done(err, "/campaigns/"+string(campaign.ID)+page, note)
}
