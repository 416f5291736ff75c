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
