package formsvc

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// A Form is how a campaign is published: as a page for everybody who has its address, made from the modules.
type Form struct {
	Enabled        bool         `json:"enabled"`
	Description    string       `json:"description"`       // above the questions, at most 10,000 characters
	SuccessMessage string       `json:"successMessage"`    // on the thanks page, at most 2,000 characters
	RedirectURL    string       `json:"redirectUrl"`       // where a browser goes in place of the thanks page, an absolute http or https URL with the reference for {reference}; "" for none
	AllowedOrigins []string     `json:"allowedOrigins"`    // of pages that embed the form or send it by a script, such as https://example.com; at most 50
	Language       string       `json:"language,omitzero"` // of the page, one of [Campaigns.Languages]; "" for the one that the browser prefers
	HideName       bool         `json:"hideName,omitzero"` // the page doesn't ask for the user's first and last name, which may be sent anyway
	Confirmation   Confirmation `json:"confirmation,omitzero"`

	Texts FormTexts `json:"texts,omitzero"` // in place of the page's own
	// Prefill has the names of questions, and of email, firstName and lastName, that the address may fill in, as in ?name=value. Values that
	// don't fit are ignored, and the others are a visitor's input as if typed.
	Prefill []string `json:"prefill,omitempty"`
	// MaxResponses is how many responses the campaign takes: 0 for any number, at most 1,000,000. Spam isn't counted.
	MaxResponses int `json:"maxResponses,omitzero"`
	// OncePerEmail takes one response of an e-mail address ([FoldEmail]), spam apart. Somebody who uses another address is
	// another person. It needs a campaign that requires an address.
	OncePerEmail bool `json:"oncePerEmail,omitzero"`
	// Theme is how the page looks.
	Theme FormTheme `json:"theme,omitzero"`
}

// Limits of a [Form].
const (
	maxSuccess = 2_000
	maxURL     = 2_048
	maxOrigins = 50
)

// FormLanguages returns the languages of forms as ISO 639-1 has them, the default first.
func FormLanguages() []string {
	return []string{"en", "de", "fr", "es", "ar", "it", "ja", "pt", "nl", "pl", "tr"}
}

// Languages returns those that a [Form] may have: [FormLanguages] and [Options].Languages.
func (c Campaigns) Languages() []string { return c.s.languages() }

func (o *Options) languages() []string {
	ours := FormLanguages() // a host may have had one of them before
	return append(ours, slices.DeleteFunc(slices.Clone(o.Languages), func(code string) bool { return slices.Contains(ours, code) })...)
}

// ByForm returns the campaign whose form has that token, or [ErrNotFound] also if the form isn't enabled.
func (c Campaigns) ByForm(ctx context.Context, token string) (_ Campaign, err error) {
	defer wrap(&err, "form")
	campaign, err := c.s.store.CampaignByForm(ctx, token)
	if err == nil && !campaign.Form.Enabled {
		return Campaign{}, ErrNotFound
	}
	return campaign, err
}

// RotateForm gives the campaign's form another token: its old address stops working at once. It fails with [ErrNotFound].
func (c Campaigns) RotateForm(ctx context.Context, key CampaignKey) (_ Campaign, err error) {
	defer wrap(&err, "rotate form")
	return c.update(ctx, key, func(campaign *Campaign) error {
		campaign.FormToken = rand.Text()
		return nil
	})
}

// originForm is the Origin that a browser sends (RFC 6454 §6.2), with http or https. It is safe in a header.
var originForm = regexp.MustCompile(`^https?://([a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(:[0-9]{1,5})?$`)

// hostNames turns names into those that browsers look up: of UTS 46, which also folds case.
//
//nolint:gochecknoglobals // immutable
var hostNames = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.CheckHyphens(false))

// browserOrigin returns an origin as a browser sends it (WHATWG URL §4.7): the name in ASCII, an address in its shortest form, and
// no default port. It reports whether it is an origin.
func browserOrigin(s string) (string, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || !strings.EqualFold(s, u.Scheme+"://"+u.Host) {
		return s, false
	}
	host, suffix := u.Hostname(), ""
	port, err := strconv.ParseUint("0"+u.Port(), 10, 16)
	switch {
	case err != nil || port == 0 && u.Port() != "" || strings.HasSuffix(u.Host, ":"):
		return s, false
	case port != 0 && port != map[string]uint64{"http": 80, "https": 443}[u.Scheme]:
		suffix = ":" + strconv.FormatUint(port, 10)
	}
	if strings.HasPrefix(u.Host, "[") {
		ip, err := netip.ParseAddr(host)
		if err != nil || !ip.Is6() || ip.Zone() != "" {
			return s, false
		}
		if host = ip.String(); ip.Is4In6() {
			b := ip.As16()
			host = fmt.Sprintf("::ffff:%x:%x", uint16(b[12])<<8|uint16(b[13]), uint16(b[14])<<8|uint16(b[15]))
		}
		host = "[" + host + "]"
	} else if host, err = hostNames.ToASCII(host); err != nil {
		return s, false
	} else if _, err := netip.ParseAddr(host); err != nil && numericEnd.MatchString(host) {
		return s, false // a browser writes it as another address, or takes it for none
	}
	origin := u.Scheme + "://" + host + suffix
	return origin, originForm.MatchString(origin)
}

// numericEnd matches names that browsers take for an IPv4 address.
var numericEnd = regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)\.?$`)

// checkForm notes the faults of a form, and returns it with origins as browsers send them.
func (e *ValidationError) checkForm(f Form) Form {
	e.checkLine("/form/description", f.Description, maxDescription)
	e.checkLine("/form/successMessage", f.SuccessMessage, maxSuccess)
	e.checkLine("/form/redirectUrl", f.RedirectURL, maxURL)
	e.checkConfirmation(&f.Confirmation)
	if f.RedirectURL != "" && httpURL(f.RedirectURL) == nil {
		e.add("/form/redirectUrl", "invalid_url", "must be an absolute http or https URL")
	}
	e.checkFormTexts(f.Texts)
	f.Theme = e.checkTheme(f.Theme)
	if known := e.host.languages(); f.Language != "" && !slices.Contains(known, f.Language) {
		e.add("/form/language", "invalid_value", "must be empty or one of %s", strings.Join(known, ", "))
	}
	if len(f.AllowedOrigins) > maxOrigins {
		e.add("/form/allowedOrigins", "too_many", "must have at most %d origins", maxOrigins)
		return f
	}
	origins := f.AllowedOrigins
	f.AllowedOrigins = nil
	for i, origin := range origins {
		origin, ok := browserOrigin(origin)
		if !ok {
			e.add(fmt.Sprintf("/form/allowedOrigins/%d", i), "invalid_origin", "must be an origin such as https://example.com")
		}
		if !slices.Contains(f.AllowedOrigins, origin) { // typed in two ways
			f.AllowedOrigins = append(f.AllowedOrigins, origin)
		}
	}
	return f
}

// FormTexts are words of the owner that take the place of the page's own. Texts are plain; line breaks stay. "" leaves the page's own.
type FormTexts struct {
	Button      string `json:"button,omitzero"`      // that sends the form, at most 60 characters
	ThanksTitle string `json:"thanksTitle,omitzero"` // above [Form].SuccessMessage, at most 2,000 characters, as the others
	Closed      string `json:"closed,omitzero"`      // while the campaign is closed
	Full        string `json:"full,omitzero"`        // when the form takes no more answers
}

// maxButton is the longest text of a form's button in characters.
const maxButton = 60

// all returns the texts.
func (t *FormTexts) all() []string { return []string{t.Button, t.ThanksTitle, t.Closed, t.Full} }

// checkFormTexts notes the faults of the owner's words.
func (e *ValidationError) checkFormTexts(t FormTexts) {
	names := []string{"button", "thanksTitle", "closed", "full"}
	for i, text := range t.all() {
		pointer := "/form/texts/" + names[i]
		e.checkLine(pointer, text, map[bool]int{true: maxButton, false: maxSuccess}[i == 0])
		if text != "" && !visible(text) {
			e.add(pointer, "invalid_value", "must be empty or have a character that can be seen")
		}
	}
}
