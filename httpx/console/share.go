package console

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// A sharePage shows how to reach the form of a campaign, and has its settings.
type sharePage struct {
	FormURL  string // "" unless the form is enabled
	Guessed  bool   // whether the address is that which the browser requested
	Form     formsvc.Form
	Snippets snippets
	Site     string // as typed
	Stale    bool   // whether somebody else changed the campaign
	Version  int64
	Fields   []fillable // that the address can fill in
	Previews bool
	Made     map[string]string // the logo and the cover in base64, if they aren't saved yet
}

// share shows the address of a campaign's form and its settings.
func (v *visit) share() error { return v.showShare(http.StatusOK, sharePage{Form: v.campaign.Form}) }

func (v *visit) showShare(status int, p sharePage) (err error) {
	p.Fields, p.Previews = fillables(&v.campaign), v.h.opts.Preview != nil
	p.Guessed, p.Version = v.h.baseURL == nil && v.h.formsURL.Host == "", cmp.Or(p.Version, v.campaign.Version)
	if v.campaign.Form.Enabled {
		p.FormURL = v.public(v.h.formsURL) + "/" + v.campaign.FormToken
		if p.Snippets, err = v.snippets(p.FormURL); err != nil {
			return err
		}
	}
	return v.show(status, "share", "Share "+v.campaign.Title, p)
}

// saveShare publishes the form, or changes its settings.
func (v *visit) saveShare() error {
	form := v.campaign.Form // with what other pages set
	form.Enabled, form.Description = v.field("enabled") != "", textAsStored(v.field("description"), form.Description)
	form.SuccessMessage = textAsStored(v.field("successMessage"), form.SuccessMessage)
	form.RedirectURL, form.AllowedOrigins, form.Language = v.field("redirectUrl"), lines(v.r.PostForm.Get("origins")), v.field("language")
	v.readWords(&form)
	for i, site := range form.AllowedOrigins {
		form.AllowedOrigins[i] = originOf(site)
	}
	return v.saveForm(&form, v.path("/share"), "form-saved", func(status int, version int64) error {
		return v.showShare(status, sharePage{Form: form, Version: version, Stale: status == http.StatusConflict})
	})
}

// saveForm changes the form of the campaign, and leads to a page with a note. show shows the form again: with 422 and its version if it has
// errors, or with 409 and the version now if somebody else changed the campaign, which is read again.
func (v *visit) saveForm(form *formsvc.Form, path, note string, show func(status int, version int64) error) error {
	err := v.change(v.version(), func(in *formsvc.CampaignInput) { in.Form = *form })
	if errors.Is(err, formsvc.ErrStale) {
		if v.campaign, err = v.svc.Campaigns.Get(v.ctx(), v.campaign.Key()); err != nil {
			return err
		}
		return show(http.StatusConflict, v.campaign.Version)
	}
	if v.invalid(err) {
		return show(http.StatusUnprocessableEntity, v.version())
	}
	return v.done(err, path, note)
}

// allowSite adds a site that may embed the form.
func (v *visit) allowSite() error {
	site := v.field("site")
	err := v.change(v.campaign.Version, func(in *formsvc.CampaignInput) {
		if origin := originOf(site); !slices.Contains(in.Form.AllowedOrigins, origin) {
			in.Form.AllowedOrigins = append(slices.Clone(in.Form.AllowedOrigins), origin)
		}
	})
	if v.invalid(err) {
		v.wrong = map[string]string{"site": v.wrong["form.allowedOrigins"]}
		return v.showShare(http.StatusUnprocessableEntity, sharePage{Form: v.campaign.Form, Site: site})
	}
	return v.done(err, v.path("/share"), "site-allowed")
}

// originOf returns the origin of an address as a browser shows it. It returns other texts unchanged.
func originOf(text string) string {
	address := text
	if !strings.Contains(text, "://") && strings.Contains(text, ".") {
		address = "https://" + text
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return text
	}
	return u.Scheme + "://" + u.Host
}

// version returns the version of the record that the form was shown with. It returns -1, which no record has, for none.
func (v *visit) version() int64 {
	n, err := strconv.ParseInt(v.field("version"), 10, 64)
	if err != nil || n < 1 {
		return -1
	}
	return n
}

// change changes the campaign, if it has that version.
func (v *visit) change(version int64, change func(*formsvc.CampaignInput)) error {
	in := v.campaign.CampaignInput
	change(&in)
	in.IfVersion = version
	_, err := v.svc.Campaigns.Replace(v.ctx(), v.campaign.Key(), in)
	return err
}

// rotateForm gives the form another address, unless somebody else did since the page was shown.
func (v *visit) rotateForm() error {
	if v.version() != v.campaign.Version {
		return formsvc.ErrStale
	}
	_, err := v.svc.Campaigns.RotateForm(v.ctx(), v.campaign.Key())
	return v.done(err, v.path("/share"), "form-rotated")
}
