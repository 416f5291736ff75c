package console

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/people"
)

type campaignPage struct {
	Responses []row
	Columns   []column // of the table
	Choices   []column // all that the table can have
	Choosing  bool     // whether the choice is open
	HasFiles  bool     // whether a question asks for files, which the visitor may read
	Chosen    []string // the columns in the address
	View      string   // the query of this page, to come back to it
	Suffix    string   // the same for a link, with its question mark
	Statuses  []string // to filter by, and to change selected responses to
	NewStatus bool     // whether other statuses are possible
	Spam      int64    // how many responses are spam
	All       int64    // how many there are, with spam
	IsSpam    bool     // whether the page shows them, and not the others
	Order     string   // the address with the other order
	Oldest    bool     // whether the oldest response is first
	Live      string   // what the page has seen of the changes
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

// responses shows a campaign and its responses, newest first unless the address says otherwise. Those that are spam are shown alone.
func (v *visit) responses() error {
	p := campaignPage{APIURL: v.apiURL(), Choosing: v.query("columns") != "", Oldest: v.ascending()}
	p.View, p.Suffix, p.Chosen = v.view(), v.suffix(), v.viewed()["c"]
	if !v.who.permits(formsvc.ResponsesRead) {
		return v.show(http.StatusOK, "campaign", v.campaign.Title, p)
	}
	var err error
	if p.Live, err = v.seenEvents(); err != nil { // before what the page shows
		return err
	}
	q, export, err := v.readFilter(&p)
	if err != nil {
		return err
	}
	list, searched, last, err := v.find(q, p.Filter["search"], pageSize)
	if err != nil {
		return err
	}
	if p.Columns, p.Choices, err = v.columns(list.Items); err != nil {
		return err
	}
	p.Order = v.with("order", map[bool]string{false: "asc"}[p.Oldest])
	p.HasFiles = v.who.permits(formsvc.FilesRead) &&
		slices.ContainsFunc(v.campaign.Modules, func(m formsvc.Module) bool { return m.Type == formsvc.FileModule })
	p.Export = "?" + export.Encode()
	export["column"] = tableColumns(p.Columns)
	p.Table = "?" + export.Encode()
	if p.Responses, err = v.rows(list.Items, p.Columns); err != nil {
		return err
	}
	if err := v.readStatuses(&p); err != nil {
		return err
	}
	p.Pager = pagerOf(v, list, func(r *formsvc.Response) formsvc.ID { return r.ID })
	if searched > 0 {
		before, _ := strconv.Atoi(v.query("searched")) // by the pages before this one
		p.Searched = int64(max(before, 0) + searched)
		p.Pager.Older = fmt.Sprintf("%s&after=%s&searched=%d", p.Pager.First, last, p.Searched)
	}
	return v.show(http.StatusOK, "campaign", v.campaign.Title, p)
}

// readStatuses reads the known statuses and those in use, and counts the responses. Spam counts apart.
func (v *visit) readStatuses(p *campaignPage) error {
	statuses, others, counts, err := v.statuses("")
	if err != nil {
		return err
	}
	p.Statuses, p.NewStatus, p.Spam = statuses, others, counts[formsvc.StatusSpam]
	p.All = v.campaign.ResponseCount
	v.campaign.ResponseCount -= p.Spam
	return nil
}

// statuses returns the statuses that may follow from, with those that responses of the campaign have if any may; whether there may be
// others; and how many responses have each.
func (v *visit) statuses(from string) (list []string, others bool, counts map[string]int64, err error) {
	list, others = v.svc.Responses.Statuses(&v.campaign, from)
	if counts, err = v.svc.Responses.Counts(v.ctx(), v.campaign.Key()); err != nil {
		return nil, false, nil, err
	}
	if others {
		list = slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(list, maps.Keys(counts)))))
	}
	return slices.DeleteFunc(list, func(s string) bool { return s == from || s == formsvc.StatusSpam }), others, counts, nil
}

// Limits of a search for a text.
const (
	searchTime = 60 * time.Millisecond // that one page searches for; a link goes on from there
	searchStep = 250                   // responses that it reads at once
)

// find returns up to most of the next responses that match the query and contain the text. searched is not 0 if its time was
// over, after the response last. It reads at least one step.
func (v *visit) find(q formsvc.ResponseQuery, text string, most int) (found formsvc.Page[formsvc.Response], searched int, last formsvc.ID, err error) {
	q.Page.Limit = most
	if text == "" {
		found, err = v.svc.Responses.List(v.ctx(), q)
		return found, 0, "", err
	}
	q.Page.Limit = searchStep
	search := formsvc.NewSearch(text, v.campaign.Modules, v.zone)
	for until := time.Now().Add(v.h.searchTime); ; {
		list, err := v.svc.Responses.List(v.ctx(), q)
		if err != nil {
			return found, 0, "", err
		}
		for i := range list.Items {
			r := &list.Items[i]
			searched, q.Page.After = searched+1, r.ID
			if !search.Finds(r) {
				continue
			}
			if found.Items = append(found.Items, *r); len(found.Items) == most {
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

// readFilter returns the query of the view's list, and the query of the API's export with the same filter.
func (v *visit) readFilter(p *campaignPage) (q formsvc.ResponseQuery, export url.Values, err error) {
	q = formsvc.ResponseQuery{AccountID: v.account(), CampaignID: v.campaign.ID, Page: v.page(), NoTotal: true}
	filter, view := &q.Filter, v.viewed()
	p.Filter, export = map[string]string{}, url.Values{}
	for _, c := range []struct {
		name, words string
		at          *time.Time // nil: a text
	}{
		{"status", "with status %s", nil}, {"email", "from %s", nil}, {"reference", "with reference %s", nil},
		{"createdAfter", "submitted since %s", &filter.CreatedAfter}, {"createdBefore", "submitted before %s", &filter.CreatedBefore},
		{"search", "containing “%s”", nil},
	} {
		text := strings.TrimSpace(view.Get(c.name))
		p.Filter[c.name] = text
		if text == "" {
			continue
		}
		if err := formsvc.CheckText(text); err != nil {
			return q, nil, &refusal{http.StatusBadRequest, "The filter can't be read", "The text isn't valid UTF-8 or has a NUL character."}
		}
		shown := text
		if c.at != nil {
			at, ok := v.day(text)
			if !ok {
				v.wrong = map[string]string{"filter": v.badDay()}
				continue
			}
			*c.at, text, shown = at, isoTime(at), v.dayText(at)
		}
		export.Set(c.name, text)
		if p.IsSpam = p.Filter["status"] == formsvc.StatusSpam; !p.IsSpam || c.name != "status" {
			p.Terms = append(p.Terms, term{fmt.Sprintf(c.words, short(100, shown)), v.without(c.name, "after")})
		}
	}
	filter.Email, filter.Reference, filter.Status = p.Filter["email"], p.Filter["reference"], export["status"]
	if !p.IsSpam {
		filter.NotStatus = formsvc.StatusSpam
	}
	if q.Page.Ascending {
		export.Set("order", "asc")
	}
	return q, export, nil
}

// export sends all responses of a campaign that match the filter, but spam only if the filter asks for it.
func (v *visit) export() error {
	file, e := v.r.PathValue("file"), people.Request{Zone: v.zone}
	if v.query("status") != formsvc.StatusSpam {
		e.NotStatus = formsvc.StatusSpam
	}
	if file == "people.zip" && !v.who.permits(formsvc.FilesRead) {
		return lacking(formsvc.FilesRead)
	}
	switch file {
	case "responses.csv", "responses.ndjson":
	case "people.csv", "people.xlsx", "people.zip":
		e.Labels, e.Files, file = true, v.address("/files/"), strings.Replace(file, "people", "responses", 1)
		e.Name = "responses-" + v.svc.Now().In(v.zone).Format(time.DateOnly)
	default:
		return formsvc.ErrNotFound
	}
	return v.ask("/v1/campaigns/"+string(v.campaign.ID)+"/"+file, &e, formsvc.ResponsesRead, formsvc.FilesRead)
}

// address returns the absolute address of a page.
func (v *visit) address(path string) string {
	if v.h.baseURL != nil {
		return v.h.baseURL.String() + path
	}
	return map[bool]string{false: "http://", true: "https://"}[v.secure()] + v.r.Host + v.base + path
}

// file sends a file, to be shown in the page if that is asked for.
func (v *visit) file() error {
	inline := v.query("show") != ""
	v.r.URL.RawQuery = "" // the API has no such parameter
	return v.ask("/v1/files/"+string(v.id("file")), &people.Request{Inline: inline}, formsvc.FilesRead)
}

// ask serves the request through the API, with the visitor as principal.
func (v *visit) ask(path string, asked *people.Request, permissions ...formsvc.Permission) error {
	asked.Who = &formsvc.Principal{AccountID: v.account(), Permissions: permissions, NoQuota: true}
	r := v.r.Clone(people.With(v.ctx(), asked))
	r.URL = &url.URL{Path: path, RawQuery: v.r.URL.RawQuery}
	r.RequestURI = path
	v.slot.Release() // the API acquires its own
	v.h.api.ServeHTTP(v.w, r)
	return nil
}
