package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

type campaignPage struct {
	Responses []row
	Columns   []column // of the table
	Choices   []column // all that the table can have
	Choosing  bool     // whether the choice is open
	View      string   // the query of this page, to come back to it
	Statuses  []string // to change selected responses to
	Pager     pager
	Searched  int64             // how many responses the search looked at, with the pages before, if it stopped before the end
	Filter    map[string]string // as typed, by the parameter of the address
	Terms     []term            // the filter in words
	Export    string            // the query of the export of all that match
	Table     string            // the query of the export of this table
	APIURL    string
}

// A term is one condition of the filter, and the query without it.
type term struct{ Text, Without string }

// responses shows a campaign and its responses, newest first.
func (v *visit) responses() error {
	p := campaignPage{APIURL: v.apiURL(), View: v.view(), Choosing: v.query("columns") != ""}
	filter, export, err := v.readFilter(&p)
	if err != nil {
		return err
	}
	list, searched, last, err := v.find(formsvc.ResponseQuery{
		AccountID: v.account(), CampaignID: v.campaign.ID, Filter: filter, Page: v.page(), NoTotal: true,
	}, p.Filter["search"])
	if err != nil {
		return err
	}
	p.Columns, p.Choices = v.columns()
	p.Export = "?" + export.Encode()
	export["column"] = tableColumns(p.Columns)
	p.Table = "?" + export.Encode()
	if p.Responses, err = rows(list.Items, p.Columns); err != nil {
		return err
	}
	p.Statuses, _ = v.svc.Responses.Statuses("")
	p.Pager = pagerOf(v, list, func(r *formsvc.Response) formsvc.ID { return r.ID })
	if searched > 0 {
		before, _ := strconv.Atoi(v.query("searched")) // by the pages before this one
		p.Searched = int64(max(before, 0) + searched)
		p.Pager.Older = fmt.Sprintf("%s&after=%s&searched=%d", p.Pager.First, last, p.Searched)
	}
	return v.show(http.StatusOK, "campaign", v.campaign.Title, p)
}

// Limits of a search for a text.
const (
	searchTime = 60 * time.Millisecond // that one page searches for; a link goes on from there
	searchStep = 250                   // responses that it reads at once
)

// find returns the next page of the responses that match the query and contain the text. searched is not 0 if its time was
// over, after the response last. It reads at least one step.
func (v *visit) find(q formsvc.ResponseQuery, text string) (found formsvc.Page[formsvc.Response], searched int, last formsvc.ID, err error) {
	if text == "" {
		found, err = v.svc.Responses.List(v.ctx(), q)
		return found, 0, "", err
	}
	q.Page.Limit = searchStep
	for until := time.Now().Add(v.h.searchTime); ; {
		list, err := v.svc.Responses.List(v.ctx(), q)
		if err != nil {
			return found, 0, "", err
		}
		for i := range list.Items {
			r := &list.Items[i]
			searched, q.Page.After = searched+1, r.ID
			if !r.Contains(text) {
				continue
			}
			if found.Items = append(found.Items, *r); len(found.Items) == pageSize {
				found.More = list.More || i < len(list.Items)-1
				return found, 0, "", nil
			}
		}
		switch {
		case !list.More:
			return found, 0, "", nil
		case !time.Now().Before(until):
			return found, searched, q.Page.After, nil
		}
	}
}

// readFilter returns the filter in the address, and the query of the API's export with the same filter.
func (v *visit) readFilter(p *campaignPage) (filter formsvc.ResponseFilter, export url.Values, err error) {
	p.Filter, export = map[string]string{}, url.Values{}
	for _, c := range []struct {
		name, words string
		at          *time.Time // nil: a text
	}{
		{"status", "with status %s", nil}, {"email", "from %s", nil}, {"reference", "with reference %s", nil},
		{"createdAfter", "submitted since %s", &filter.CreatedAfter}, {"createdBefore", "submitted before %s", &filter.CreatedBefore},
		{"search", "containing “%s”", nil},
	} {
		text := v.query(c.name)
		p.Filter[c.name] = text
		if text == "" {
			continue
		}
		if err := formsvc.CheckText(text); err != nil {
			return filter, nil, &refusal{http.StatusBadRequest, "The filter can't be read", "The text isn't valid UTF-8 or has a NUL character."}
		}
		shown := text
		if c.at != nil {
			at, ok := day(text)
			if !ok {
				v.wrong = map[string]string{"filter": badDay}
				continue
			}
			*c.at, text, shown = at, isoTime(at), dayText(at)
		}
		export.Set(c.name, text)
		p.Terms = append(p.Terms, term{fmt.Sprintf(c.words, short(100, shown)), v.without(c.name, "after")})
	}
	filter.Email, filter.Reference, filter.Status = p.Filter["email"], p.Filter["reference"], export["status"]
	return filter, export, nil
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
	if t.Equal(t.Truncate(24 * time.Hour)) {
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
	return v.ask("/v1/campaigns/"+string(v.campaign.ID)+"/"+file, formsvc.ResponsesRead)
}

// file sends a file.
func (v *visit) file() error { return v.ask("/v1/files/"+string(v.id("file")), formsvc.FilesRead) }

// principalKey is the context key for the principal of a request to the API.
type principalKey struct{}

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
