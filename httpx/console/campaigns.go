package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

type campaignsPage struct {
	Campaigns []formsvc.Campaign
	Total     int64
	Pager     pager
	APIURL    string
}

// campaigns lists the campaigns of the account.
func (v *visit) campaigns() error {
	list, err := v.svc.Campaigns.List(v.ctx(), formsvc.CampaignQuery{AccountID: v.account(), Page: v.page()})
	if err != nil {
		return err
	}
	p := campaignsPage{Campaigns: list.Items, Total: list.Total, APIURL: v.apiURL()}
	if n := len(list.Items); n > 0 {
		p.Pager = v.pager(list.More, list.Items[n-1].ID)
	}
	return v.show(http.StatusOK, "campaigns", "Campaigns", p)
}

type campaignPage struct {
	Campaign  formsvc.Campaign
	Responses []row
	Columns   []column // of the table
	Choices   []column // all that the table can have
	View      string   // the query of this page, to come back to it
	Statuses  []string // to change selected responses to
	Pager     pager
	Further   string // where the search goes on, if it stopped before the end
	Looked    int64  // how many responses were searched
	Filter    filterForm
	Filtered  bool
	Export    string // the query of the export with this filter
	APIURL    string
}

// A filterForm is the filter of responses as the visitor typed it.
type filterForm struct{ Status, Email, Reference, After, Before string }

// campaign shows a campaign and its responses, newest first.
func (v *visit) campaign() error {
	key := formsvc.CampaignKey{AccountID: v.account(), ID: v.id("campaign")}
	campaign, err := v.svc.Campaigns.Get(v.ctx(), key)
	if err != nil {
		return err
	}
	form := filterForm{v.query("status"), v.query("email"), v.query("reference"), v.query("createdAfter"), v.query("createdBefore")}
	p := campaignPage{Campaign: campaign, Filter: form, APIURL: v.apiURL()}
	filter, export, ok := form.read()
	if !ok {
		v.wrong = map[string]string{"filter": "Enter a date such as 2026-11-21, or with a time such as 2026-11-21T08:30, in UTC."}
	}
	if err := formsvc.CheckText(form.Status, form.Email, form.Reference); err != nil {
		return &refusal{http.StatusBadRequest, "The filter can't be read", "The text isn't valid UTF-8 or has a NUL character."}
	}
	p.Filtered, p.Export = !filter.IsZero(), export
	further, err := v.narrow(key, &filter)
	if err != nil {
		return err
	}
	list, err := v.svc.Responses.List(v.ctx(), formsvc.ResponseQuery{
		AccountID: v.account(), CampaignID: campaign.ID, Filter: filter, Page: v.page(), NoTotal: true,
	})
	if err != nil {
		return err
	}
	p.Columns, p.Choices = v.columns(&campaign)
	if p.Responses, err = rows(list.Items, p.Columns); err != nil {
		return err
	}
	p.View = v.view()
	p.Statuses, _ = v.svc.Responses.Statuses("")
	if n := len(list.Items); n > 0 {
		p.Pager = v.pager(list.More, list.Items[n-1].ID)
	}
	if further != "" && !list.More {
		p.Further, p.Looked = v.pager(true, further).Older, int64(v.h.searched)
	}
	return v.show(http.StatusOK, "campaign", campaign.Title, p)
}

// searched is the limit of responses that a page searches for a status or an address, since not every store has an
// index of addresses.
const searched = 20_000

// narrow limits the filter to the next responses of the search. It returns the response to go on after, or "" if these
// are the last.
func (v *visit) narrow(key formsvc.CampaignKey, filter *formsvc.ResponseFilter) (further formsvc.ID, err error) {
	if filter.Reference != "" || len(filter.Status) == 0 && filter.Email == "" {
		return "", nil // there is an index, or no filter
	}
	all := formsvc.ResponseQuery{
		AccountID: key.AccountID, CampaignID: key.ID, Page: formsvc.PageQuery{Limit: 1, Offset: v.h.searched}, NoTotal: true,
		Filter: formsvc.ResponseFilter{CreatedAfter: filter.CreatedAfter, CreatedBefore: filter.CreatedBefore},
	}
	if after := v.page().After; after != "" {
		if before := madeAt(after).Add(time.Millisecond); all.Filter.CreatedBefore.IsZero() || before.Before(all.Filter.CreatedBefore) {
			all.Filter.CreatedBefore = before
		}
	}
	list, err := v.svc.Responses.List(v.ctx(), all)
	if err != nil || len(list.Items) == 0 {
		return "", err
	}
	// Include responses of the same millisecond, even if some are searched twice.
	filter.CreatedAfter = list.Items[0].CreatedAt.Add(-time.Millisecond)
	return list.Items[0].ID, nil
}

// madeAt returns the time in an identifier, in milliseconds (RFC 9562 §5.7).
func madeAt(id formsvc.ID) time.Time {
	n, _ := strconv.ParseInt(strings.Replace(string(id[:13]), "-", "", 1), 16, 64) // always a UUID
	return time.UnixMilli(n)
}

// read returns the filter, and the query of the API's export with the same filter.
func (f *filterForm) read() (filter formsvc.ResponseFilter, export string, ok bool) {
	query := url.Values{}
	filter.Email, filter.Reference = f.Email, f.Reference
	if f.Status != "" {
		filter.Status = []string{f.Status}
	}
	for name, text := range map[string]string{"status": f.Status, "email": f.Email, "reference": f.Reference} {
		if text != "" {
			query.Set(name, text)
		}
	}
	ok = true
	for name, text := range map[string]string{"createdAfter": f.After, "createdBefore": f.Before} {
		if text == "" {
			continue
		}
		at, good := day(text)
		if !good {
			ok = false
			continue
		}
		query.Set(name, isoTime(at))
		if name == "createdAfter" {
			filter.CreatedAfter = at
		} else {
			filter.CreatedBefore = at
		}
	}
	if encoded := query.Encode(); encoded != "" {
		export = "?" + encoded
	}
	return filter, export, ok
}

// day parses a date, or a date and a time, in UTC.
func day(text string) (time.Time, bool) {
	for _, layout := range []string{"2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() >= 1970 {
			return t, true
		}
	}
	return time.Time{}, false
}

// export sends all responses of a campaign that match the filter.
func (v *visit) export() error {
	file := v.r.PathValue("file")
	if !slices.Contains([]string{"responses.csv", "responses.ndjson"}, file) {
		return formsvc.ErrNotFound
	}
	return v.ask("/v1/campaigns/"+string(v.id("campaign"))+"/"+file, formsvc.ResponsesRead)
}

// file sends a file.
func (v *visit) file() error { return v.ask("/v1/files/"+string(v.id("file")), formsvc.FilesRead) }

// ask serves the request through the API, with the visitor as principal.
func (v *visit) ask(path string, permission formsvc.Permission) error {
	who := &formsvc.Principal{AccountID: v.account(), Permissions: []formsvc.Permission{permission}, NoQuota: true}
	ctx := context.WithValue(v.ctx(), principalKey{}, who)
	r := v.r.Clone(ctx)
	r.URL = &url.URL{Path: path, RawQuery: v.r.URL.RawQuery}
	r.RequestURI = path
	v.h.api.ServeHTTP(v.w, r)
	return nil
}
