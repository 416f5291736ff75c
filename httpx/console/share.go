package console

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/formsvc/toolkit/formsvc"
)

// A sharePage shows how to reach the form of a campaign, and has its settings.
type sharePage struct {
	FormURL string // "" unless the form is enabled
	Form    formsvc.Form
	APIURL  string
}

// share shows the address of a campaign's form and its settings.
func (v *visit) share() error { return v.showShare(http.StatusOK, v.campaign.Form) }

func (v *visit) showShare(status int, form formsvc.Form) error {
	p := sharePage{Form: form, APIURL: v.apiURL()}
	if v.campaign.Form.Enabled {
		p.FormURL = p.APIURL + "/f/" + v.campaign.FormToken
	}
	return v.show(status, "share", "Share "+v.campaign.Title, p)
}

// saveShare publishes the form, or changes its settings.
func (v *visit) saveShare() error {
	form := formsvc.Form{
		Enabled: v.field("enabled") != "", Description: v.field("description"), SuccessMessage: v.field("successMessage"),
		RedirectURL: v.field("redirectUrl"), AllowedOrigins: lines(v.r.PostForm.Get("origins")),
	}
	err := v.change(func(in *formsvc.CampaignInput) { in.Form = form })
	if v.invalid(err) {
		return v.showShare(http.StatusUnprocessableEntity, form)
	}
	if err != nil {
		return err
	}
	return v.redirect("/campaigns/"+string(v.campaign.ID)+"/share", url.Values{"note": {"form-saved"}})
}

// change changes the campaign as it is now.
func (v *visit) change(change func(*formsvc.CampaignInput)) error {
	for {
		in := v.campaign.CampaignInput
		change(&in)
		in.IfVersion = v.campaign.Version
		_, err := v.svc.Campaigns.Replace(v.ctx(), v.campaign.Key(), in)
		if !errors.Is(err, formsvc.ErrStale) {
			return err
		}
		if v.campaign, err = v.svc.Campaigns.Get(v.ctx(), v.campaign.Key()); err != nil {
			return err
		}
	}
}

// rotateForm gives the form another address.
func (v *visit) rotateForm() error {
	if _, err := v.svc.Campaigns.RotateForm(v.ctx(), v.campaign.Key()); err != nil {
		return err
	}
	return v.redirect("/campaigns/"+string(v.campaign.ID)+"/share", url.Values{"note": {"form-rotated"}})
}
