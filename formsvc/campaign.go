package formsvc

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strings"
	"time"
)

// CampaignStatus says whether a campaign accepts responses.
type CampaignStatus string

// The statuses of a campaign.
const (
	CampaignOpen   CampaignStatus = "open"   // accepts responses between OpensAt and ClosesAt; the default
	CampaignClosed CampaignStatus = "closed" // accepts none
)

// A Campaign is a form that responses are submitted to. It has opening times, and a module for each
// question; without modules it accepts any answers.
type Campaign struct {
	ID        ID
	AccountID ID
	CampaignInput
	// FormToken is the random part of the form's address. It is made when the form is first enabled, kept while it is
	// disabled, and "" before. It lets anybody submit, and nothing else.
	FormToken     string
	Views         []View // see [Campaigns.SaveView]; at most 20
	ResponseCount int64
	Version       int64 // 1 for a new campaign, one more with every change
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// Size returns about how many bytes of memory the campaign takes.
func (c *Campaign) Size() int {
	const fixed, module, text = 600, 64, 16 // the struct with its identifiers, a module without its texts, a text
	size := fixed + len(c.Modules)*module + len(c.Form.Theme.Logo) + len(c.Form.Theme.Cover)
	for _, s := range c.Texts() {
		size += text + len(s)
	}
	return size
}

// Texts returns every text that people set, for stores that check them ([CheckText]).
func (c *Campaign) Texts() []string {
	list := c.CampaignInput.Texts()
	for _, v := range c.Views {
		list = append(list, v.Name, v.Query)
	}
	return list
}

// Texts returns every text that the owner of the campaign sets, for stores that check them ([CheckText]).
func (in *CampaignInput) Texts() []string {
	list := []string{in.Title, in.Description, string(in.Status), in.Workflow, in.TimeZone, in.Form.Description, in.Form.SuccessMessage, in.Form.RedirectURL, in.Form.Language}
	list = append(list, in.Form.Confirmation.Subject, in.Form.Confirmation.Text, in.Form.Confirmation.ReplyTo)
	list = append(list, in.Form.Theme.Accent, in.Form.Theme.Scheme, in.Form.Theme.Width, in.Form.Theme.LogoAlt)
	list = append(append(append(list, in.Form.AllowedOrigins...), in.Form.Texts.all()...), in.Form.Prefill...)
	for _, m := range in.Modules {
		list = append(append(list, m.Name, m.Label, m.Help, m.Placeholder, string(m.Type), string(m.Min), string(m.Max), m.MinLabel, m.MaxLabel, m.Pattern, m.PatternHelp), m.Options...)
		list = slices.AppendSeq(slices.AppendSeq(list, maps.Keys(m.Labels)), maps.Values(m.Labels))
		list = slices.AppendSeq(list, maps.Keys(m.Places))
		list = append(append(append(list, m.Format), m.Accept...), m.Default...)
		if m.ShowIf != nil {
			list = append(append(list, m.ShowIf.Module), m.ShowIf.Equals...)
		}
	}
	for name, value := range in.Metadata {
		list = append(list, name, value)
	}
	return list
}

// CampaignInput is the part of a campaign that its owner sets.
type CampaignInput struct {
	Title       string         // 1 to 500 characters
	Description string         // at most 10,000 characters
	Status      CampaignStatus // "" means CampaignOpen
	OpensAt     time.Time      // zero: at once
	ClosesAt    time.Time      // zero: never; after OpensAt otherwise
	// EmailOptional is whether responses may be anonymous: without the user's e-mail address.
	EmailOptional bool
	// RequireName is whether responses need the user's first and last name.
	RequireName bool
	Modules     []Module          // none: any module name is accepted
	Metadata    map[string]string // at most 100 entries
	Form        Form
	TimeZone    string // of OpensAt and ClosesAt for people, an IANA name such as Europe/Berlin; "" means UTC
	Workflow    string // a name in [Options].Workflows; "" means [Options].Workflow
	// IfVersion makes Replace fail with ErrStale unless the campaign has this version; 0 means any
	// version. A Campaign has 0.
	IfVersion int64
}

// CampaignKey names one campaign of one account.
type CampaignKey struct{ AccountID, ID ID }

// Key names the campaign.
func (c *Campaign) Key() CampaignKey { return CampaignKey{AccountID: c.AccountID, ID: c.ID} }

// CampaignQuery chooses campaigns of one account.
type CampaignQuery struct {
	AccountID ID
	// Search selects campaigns whose title contains it, ignoring case; "" selects all. Its cost
	// grows with the number of the account's campaigns.
	Search string
	Page   PageQuery
}

// Finds returns a function for stores that reports whether Search selects a campaign with that
// title. It is nil if Search is "".
func (q *CampaignQuery) Finds() func(title string) bool {
	if q.Search == "" {
		return nil
	}
	wanted := plainText(q.Search)
	return func(title string) bool { return strings.Contains(plainText(title), wanted) }
}

// Accepts reports whether a new response may be submitted at that time.
func (c *Campaign) Accepts(now time.Time) bool {
	return c.Status == CampaignOpen &&
		(c.OpensAt.IsZero() || !now.Before(c.OpensAt)) &&
		(c.ClosesAt.IsZero() || now.Before(c.ClosesAt))
}

// Campaigns creates, changes and lists campaigns. It is safe for concurrent use.
type Campaigns struct{ s *core }

// Create creates a campaign. It fails with a *[ValidationError] that names every invalid field, and with [ErrNotFound]
// if there is no such account, and with a *[LimitError] if it has as many campaigns as it may.
func (c Campaigns) Create(ctx context.Context, account ID, in CampaignInput) (_ Campaign, err error) {
	defer wrap(&err, "create campaign")
	return once(ctx, c.s, account, func() (Campaign, error) {
		in, err := in.checked(c.s.faults())
		if err != nil {
			return Campaign{}, err
		}
		now := c.s.now()
		campaign := Campaign{
			ID: c.s.NewID(now), AccountID: account, CampaignInput: in, Version: 1, CreatedAt: now, UpdatedAt: now,
		}
		campaign.publish()
		limits, err := c.s.limits(ctx, account)
		if err != nil {
			return Campaign{}, err
		}
		if err := c.s.publishing(ctx, &campaign); err != nil {
			return Campaign{}, err
		}
		change := Change{Idempotency: record(c.s, account, "", &campaign), Limit: limits.Campaigns}
		err = c.s.store.CreateCampaign(ctx, campaign, change)
		return campaign, limited(err, "campaigns", limits.Campaigns)
	})
}

// Check fails with the *[ValidationError] that Create would fail with. It saves nothing.
func (c Campaigns) Check(in CampaignInput) error {
	_, err := in.checked(c.s.faults())
	return err
}

// Replace sets every field of in; zero values reset fields to their defaults. It fails with [ErrStale] (see
// [CampaignInput].IfVersion), and with [ErrNotFound] and *[ValidationError] as Create does.
func (c Campaigns) Replace(ctx context.Context, key CampaignKey, in CampaignInput) (_ Campaign, err error) {
	defer wrap(&err, "replace campaign")
	ifVersion := in.IfVersion
	in, err = in.checked(c.s.faults())
	if err != nil {
		return Campaign{}, err
	}
	if err := c.s.publishing(ctx, &Campaign{AccountID: key.AccountID, CampaignInput: in}); err != nil {
		return Campaign{}, err
	}
	return c.update(ctx, key, func(campaign *Campaign) error {
		if ifVersion != 0 && campaign.Version != ifVersion {
			return ErrStale
		}
		campaign.CampaignInput = in
		campaign.publish()
		return nil
	})
}

// update changes a campaign and counts its version.
func (c Campaigns) update(ctx context.Context, key CampaignKey, change func(*Campaign) error) (Campaign, error) {
	return once(ctx, c.s, key.AccountID, func() (Campaign, error) {
		campaign, err := c.s.store.UpdateCampaign(ctx, key, func(campaign *Campaign) (Change, error) {
			before := campaign.CampaignInput
			if err := change(campaign); err != nil {
				return Change{}, err
			}
			campaign.Version++
			campaign.UpdatedAt = c.s.now()
			after := *campaign // the caller gets the other one
			return Change{Idempotency: record(c.s, key.AccountID, "", campaign), Recount: after.recount(&before)}, nil
		})
		c.s.campaigns.drop(key) // not put: the caller may change the returned campaign
		return campaign, err
	})
}

// publish gives the form an address when it is first enabled.
func (c *Campaign) publish() {
	if c.Form.Enabled && c.FormToken == "" {
		c.FormToken = rand.Text() // 26 letters and digits, 130 bits
	}
}

// Delete removes a campaign that has no responses; otherwise it fails with [ErrCampaignNotEmpty]. It adds an entry to the
// audit trail. Webhooks for the campaign stay, and get nothing more. It fails with [ErrNotFound], and with [ErrStale] as
// [DeleteOptions].IfVersion says.
func (c Campaigns) Delete(ctx context.Context, key CampaignKey, opts *DeleteOptions) (err error) {
	defer wrap(&err, "delete campaign")
	return c.s.store.DeleteCampaign(ctx, key, func(campaign *Campaign) (Change, error) {
		if opts != nil && opts.IfVersion != 0 && opts.IfVersion != campaign.Version {
			return Change{}, ErrStale
		}
		return Change{Audit: c.s.audit(key.AccountID, AuditCampaignDeleted, key.ID, nil)}, nil
	})
}

// Get returns a campaign, or [ErrNotFound].
func (c Campaigns) Get(ctx context.Context, key CampaignKey) (_ Campaign, err error) {
	defer wrap(&err, "campaign")
	return c.s.store.Campaign(ctx, key)
}

// List returns a page of the account's campaigns.
func (c Campaigns) List(ctx context.Context, q CampaignQuery) (Page[Campaign], error) {
	return listed("campaigns", &q.Page, func() (Page[Campaign], error) { return c.s.store.Campaigns(ctx, q) })
}

// checked returns in with its defaults, or v with the faults of in.
func (in CampaignInput) checked(v ValidationError) (CampaignInput, error) {
	v.checkTitle("/title", in.Title, maxTitle)
	v.checkLine("/description", in.Description, maxDescription)
	switch in.Status {
	case "":
		in.Status = CampaignOpen
	case CampaignOpen, CampaignClosed:
	default:
		v.add("/status", "invalid_value", "must be open or closed")
	}
	v.checkTime("/opensAt", in.OpensAt)
	v.checkTime("/closesAt", in.ClosesAt)
	in.OpensAt, in.ClosesAt = milliseconds(in.OpensAt), milliseconds(in.ClosesAt)
	if !in.OpensAt.IsZero() && !in.ClosesAt.IsZero() && !in.ClosesAt.After(in.OpensAt) {
		v.add("/closesAt", "out_of_range", "must be after opensAt")
	}
	in.Modules = v.checkModules(in.Modules)
	v.checkMetadata(in.Metadata, maxCampaignMetadata)
	in.Form = v.checkForm(in.Form)
	v.checkPrefill(&in)
	v.checkPlaces(&in)
	if _, err := in.Zone(); err != nil {
		v.add("/timeZone", "unknown_time_zone", "must be empty or the name of a time zone such as Europe/Berlin")
	}
	if in.RequireName && in.Form.HideName {
		v.add("/form/hideName", "invalid_value", "must be false if the campaign requires a name")
	}
	if _, known := v.host.Workflows[in.Workflow]; !known && in.Workflow != "" {
		v.add("/workflow", "unknown_value", "must be the name of a workflow of this service")
	}
	in.IfVersion = 0
	return in, v.err()
}

// checkTime refuses times that RFC 3339 or a store can't represent.
func (e *ValidationError) checkTime(pointer string, t time.Time) {
	if !t.IsZero() && (t.UTC().Year() < 1970 || t.UTC().Year() > 9999) {
		e.add(pointer, "out_of_range", "must be between the years 1970 and 9999")
	}
}
