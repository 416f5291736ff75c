package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// A sharePage shows how to reach the form of a campaign, and has its settings.
type sharePage struct {
	Campaign formsvc.Campaign
	FormURL  string // "" unless the form is enabled
	Form     formsvc.Form
	Origins  string // one a line
	Version  int64
	APIURL   string
}

// share shows the address of a campaign's form and its settings.
func (v *visit) share() error {
	campaign, err := v.svc.Campaigns.Get(v.ctx(), v.campaignKey())
	if err != nil {
		return err
	}
	return v.showShare(http.StatusOK, &campaign, campaign.Form)
}

func (v *visit) showShare(status int, c *formsvc.Campaign, form formsvc.Form) error {
	p := sharePage{Campaign: *c, Form: form, Origins: strings.Join(form.AllowedOrigins, "\n"), Version: c.Version, APIURL: v.apiURL()}
	if c.Form.Enabled {
		p.FormURL = v.apiURL() + "/f/" + c.FormToken
	}
	return v.show(status, "share", "Share "+c.Title, p)
}

// saveShare publishes the form, or changes its settings.
func (v *visit) saveShare() error {
	form := formsvc.Form{
		Enabled: v.field("enabled") != "", Description: v.field("description"), SuccessMessage: v.field("successMessage"),
		RedirectURL: v.field("redirectUrl"), AllowedOrigins: lines(v.r.PostForm.Get("origins")),
	}
	campaign, err := v.change(func(in *formsvc.CampaignInput) { in.Form = form })
	if v.invalid(err, func(pointer string) string { return firstSegment(strings.TrimPrefix(pointer, "/form")) }) {
		return v.showShare(http.StatusUnprocessableEntity, &campaign, form)
	}
	if err != nil {
		return err
	}
	return v.redirect("/campaigns/"+string(campaign.ID)+"/share", url.Values{"note": {"form-saved"}})
}

// change changes a campaign as it is now. If the change is refused, it returns the campaign as it was.
func (v *visit) change(change func(*formsvc.CampaignInput)) (formsvc.Campaign, error) {
	for {
		campaign, err := v.svc.Campaigns.Get(v.ctx(), v.campaignKey())
		if err != nil {
			return campaign, err
		}
		in := campaign.CampaignInput
		change(&in)
		in.IfVersion = campaign.Version
		changed, err := v.svc.Campaigns.Replace(v.ctx(), v.campaignKey(), in)
		if err == nil {
			return changed, nil
		}
		if !errors.Is(err, formsvc.ErrStale) {
			return campaign, err
		}
	}
}

// rotateForm gives the form another address.
func (v *visit) rotateForm() error {
	campaign, err := v.svc.Campaigns.RotateForm(v.ctx(), v.campaignKey())
	if err != nil {
		return err
	}
	return v.redirect("/campaigns/"+string(campaign.ID)+"/share", url.Values{"note": {"form-rotated"}})
}

// switchCampaign opens or closes a campaign.
func (v *visit) switchCampaign() error {
	status := formsvc.CampaignStatus(v.field("status"))
	campaign, err := v.change(func(in *formsvc.CampaignInput) { in.Status = status })
	if err != nil {
		return err
	}
	return v.redirect("/campaigns/"+string(campaign.ID), url.Values{"note": {"campaign-" + string(campaign.Status)}})
}

// duplicateCampaign creates a campaign like another one, without its responses. Its form isn't published.
func (v *visit) duplicateCampaign() error {
	campaign, err := v.svc.Campaigns.Get(v.ctx(), v.campaignKey())
	if err != nil {
		return err
	}
	in := campaign.CampaignInput
	in.Title, in.Form.Enabled = short(500, "Copy of "+in.Title), false
	return v.addCampaign(in, "/edit", "campaign-copied")
}

// sampleCampaign creates a campaign to try, with a published form.
func (v *visit) sampleCampaign() error {
	return v.addCampaign(formsvc.CampaignInput{
		Title: "Contact us", Description: "A sample: change it, or delete it.",
		Modules: []formsvc.Module{
			{Name: "topic", Label: "What is it about?", Type: formsvc.ChoiceModule, Options: []string{"A question", "An order", "Something else"}, Required: true},
			{
				Name: "order", Label: "Order number", Type: formsvc.TextModule, Placeholder: "A-1234", MaxLength: 40,
				ShowIf: &formsvc.Condition{Module: "topic", Equals: []string{"An order"}},
			},
			{Name: "message", Label: "Your message", Type: formsvc.LongTextModule, Required: true, MaxLength: 5000},
			{Name: "attachment", Label: "Attachment", Type: formsvc.FileModule, Help: "A picture or a document, if it helps."},
		},
		Form: formsvc.Form{Enabled: true, SuccessMessage: "Thank you. We read every message."},
	}, "/share", "campaign-created")
}

func (v *visit) addCampaign(in formsvc.CampaignInput, page, note string) error {
	campaign, err := v.once().Campaigns.Create(v.ctx(), v.account(), in)
	if errors.Is(err, formsvc.ErrLimit) {
		return &refusal{http.StatusConflict, "No more campaigns", "This account has as many campaigns as it may have. Delete one first."}
	}
	if err != nil {
		return err
	}
	return v.redirect("/campaigns/"+string(campaign.ID)+page, url.Values{"note": {note}})
}

// deleteCampaign removes a campaign that has no responses.
func (v *visit) deleteCampaign() error {
	err := v.svc.Campaigns.Delete(v.ctx(), v.campaignKey(), nil)
	if errors.Is(err, formsvc.ErrCampaignNotEmpty) {
		return &refusal{http.StatusConflict, "This campaign has responses", "Delete them first. Or close the campaign, so that it gets no more."}
	}
	if err != nil {
		return err
	}
	return v.redirect("/campaigns", url.Values{"note": {"campaign-deleted"}})
}
