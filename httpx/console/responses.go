package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

type campaignPage struct {
	Campaign  formsvc.Campaign
	Responses []row
	Columns   []column // of the table
	Choices   []column // all that the table can have
	Choosing  bool     // whether the choice is open
	View      string   // the query of this page, to come back to it
	Statuses  []string // to change selected responses to
	Pager     pager
	Searched  int64 // how many responses the search looked at, if it stopped before the end
	Filter    filterForm
	Terms     []term // the filter in words
	Export    string // the query of the export of all that match
	Table     string // the query of the export of this table
	APIURL    string
}

// A filterForm is the filter of responses as the visitor typed it.
type filterForm struct{ Search, Status, Email, Reference, After, Before string }

// A term is one condition of the filter, and the query without it.
type term struct{ Text, Without string }

// campaign shows a campaign and its responses, newest first.
func (v *visit) campaign() error {
	campaign, err := v.svc.Campaigns.Get(v.ctx(), v.campaignKey())
	if err != nil {
		return err
	}
	form := filterForm{v.query("search"), v.query("status"), v.query("email"), v.query("reference"), v.query("createdAfter"), v.query("createdBefore")}
	if err := formsvc.CheckText(form.Search, form.Status, form.Email, form.Reference); err != nil {
		return &refusal{http.StatusBadRequest, "The filter can't be read", "The text isn't valid UTF-8 or has a NUL character."}
	}
	p := campaignPage{Campaign: campaign, Filter: form, APIURL: v.apiURL(), View: v.view(), Choosing: v.query("columns") != ""}
	filter, export, ok := form.read()
	if !ok {
		v.wrong = map[string]string{"filter": badDay}
	}
	p.Terms = v.terms(&form, &filter)
	list, searched, err := v.find(formsvc.ResponseQuery{
		AccountID: v.account(), CampaignID: campaign.ID, Filter: filter, Page: v.page(), NoTotal: true,
	}, form.Search)
	if err != nil {
		return err
	}
	p.Columns, p.Choices = v.columns(&campaign)
	p.Export = "?" + export.Encode()
	export["column"] = tableColumns(p.Columns)
	p.Table = "?" + export.Encode()
	if p.Responses, err = rows(list.Items, p.Columns); err != nil {
		return err
	}
	p.Statuses, _ = v.svc.Responses.Statuses("")
	p.Pager = pagerOf(v, list, func(r *formsvc.Response) formsvc.ID { return r.ID })
	if searched.more {
		p.Pager, p.Searched = v.pager(true, searched.last), int64(searched.n)
	}
	return v.show(http.StatusOK, "campaign", campaign.Title, p)
}

// Limits of what one page searches for a text; a link goes on from there.
const (
	searchedResponses = 10_000
	searchedBytes     = 8 << 20
)

// A search says how far a page searched.
type search struct {
	n    int        // responses
	last formsvc.ID // the last one
	more bool       // whether it stopped at a limit
}

// find returns the next page of the responses that match the query and contain the text.
func (v *visit) find(q formsvc.ResponseQuery, text string) (found formsvc.Page[formsvc.Response], s search, err error) {
	if text == "" {
		found, err = v.svc.Responses.List(v.ctx(), q)
		return found, s, err
	}
	for size := 0; ; {
		q.Page.Limit = min(500, v.h.searched-s.n)
		list, err := v.svc.Responses.List(v.ctx(), q)
		if err != nil {
			return found, s, err
		}
		for i := range list.Items {
			r := &list.Items[i]
			s.n, s.last, size = s.n+1, r.ID, size+r.Size()
			if !r.Contains(text) {
				continue
			}
			if found.Items = append(found.Items, *r); len(found.Items) == pageSize {
				found.More = list.More || i < len(list.Items)-1
				return found, s, nil
			}
		}
		s.more = list.More && (s.n >= v.h.searched || size >= searchedBytes)
		if !list.More || s.more {
			return found, s, nil
		}
		q.Page.After = s.last
	}
}

// terms returns the filter in words.
func (v *visit) terms(form *filterForm, filter *formsvc.ResponseFilter) (terms []term) {
	for _, t := range []struct{ name, value, text string }{
		{"status", form.Status, "with status " + form.Status},
		{"email", form.Email, "from " + form.Email},
		{"reference", form.Reference, "with reference " + form.Reference},
		{"createdAfter", dayText(filter.CreatedAfter), "submitted since " + dayText(filter.CreatedAfter)},
		{"createdBefore", dayText(filter.CreatedBefore), "submitted before " + dayText(filter.CreatedBefore)},
		{"search", form.Search, "containing “" + form.Search + "”"},
	} {
		if t.value != "" {
			terms = append(terms, term{short(120, t.text), v.without(t.name, "after")})
		}
	}
	return terms
}

// read returns the filter, and the query of the API's export with the same filter.
func (f *filterForm) read() (filter formsvc.ResponseFilter, export url.Values, ok bool) {
	export = url.Values{}
	filter.Email, filter.Reference = f.Email, f.Reference
	if f.Status != "" {
		filter.Status = []string{f.Status}
	}
	for name, text := range map[string]string{"search": f.Search, "status": f.Status, "email": f.Email, "reference": f.Reference} {
		if text != "" {
			export.Set(name, text)
		}
	}
	ok = true
	for name, bound := range map[string]struct {
		text string
		at   *time.Time
	}{"createdAfter": {f.After, &filter.CreatedAfter}, "createdBefore": {f.Before, &filter.CreatedBefore}} {
		if at, good := day(bound.text); good {
			*bound.at = at
			export.Set(name, isoTime(at))
		} else if bound.text != "" {
			ok = false
		}
	}
	return filter, export, ok
}

const badDay = "Enter a date such as 2026-11-21, or with a time such as 2026-11-21T08:30, in UTC."

// day parses a date, or a date and a time, in UTC.
func day(text string) (time.Time, bool) {
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() >= 1970 {
			return t, true
		}
	}
	return time.Time{}, false
}

// dayText returns a date, with the time unless that is midnight, for people.
func dayText(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.Equal(t.Truncate(24 * time.Hour)):
		return t.UTC().Format("2 Jan 2006")
	}
	return t.UTC().Format("2 Jan 2006 15:04 UTC")
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
