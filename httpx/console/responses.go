package console

import (
	"cmp"
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
	Statuses  []string // to filter by, and to change selected responses to
	NewStatus bool     // whether other statuses are possible
	Spam      int64    // how many responses are spam
	All       int64    // how many there are, with spam
	IsSpam    bool     // whether the page shows them, and not the others
	Live      string   // what the page has seen of the changes
	Pager     pager
	Unsorted  bool              // whether they are too many for that
	Matching  int64             // how many match, or at least
	Counted   bool              // whether that is exact
	Counts    map[string]int64  // by status
	Asked     []asked           // the questions that the filter shows
	Unasked   []choice          // the others
	Answered  bool              // whether the filter has a condition on an answer
	Until     string            // the time of the page
	Undo      bool              // whether the last change can be undone
	Searched  int64             // how many responses the search looked at, with the pages before, if it stopped before the end
	Filter    map[string]string // as typed, by the parameter of the address
	Terms     []term            // the filter in words
	Export    string            // the query of the export of all that match
	Table     string            // the query of the export of this table
	Limits    []string          // how many places are left of choices with a limit
}

// A term is one condition of the filter, and the query without it.
type term struct{ Text, Without string }

// responses shows a campaign and its responses, newest first unless the address says otherwise. Those that are spam are shown alone.
func (v *visit) responses() error {
	p := campaignPage{Choosing: v.query("columns") != "", Chosen: v.viewed()["c"]}
	if !v.who.permits(formsvc.ResponsesRead) {
		return v.show(http.StatusOK, "campaign", v.campaign.Title, p)
	}
	live, errLive := v.seenEvents() // before what the page shows
	w, err := v.readView(&p)
	statuses, others, counts, errStatuses := v.statuses("")
	if err = cmp.Or(errLive, err, errStatuses); err != nil {
		return err
	}
	p.Live, p.Statuses, p.NewStatus, p.Counts = live, statuses, others, counts
	if p.Limits, err = v.placesLeft(); err != nil {
		return err
	}
	p.Spam, p.All = counts[formsvc.StatusSpam], v.campaign.ResponseCount
	v.campaign.ResponseCount -= p.Spam // it counts apart
	list, searched, last, err := v.table(w, &p)
	if err != nil {
		return err
	}
	p.Columns, p.Choices = v.columns(list.Items)
	p.HasFiles = slices.ContainsFunc(p.Choices, column.Files)
	p.Export = "?" + w.export.Encode()
	w.export["column"] = tableColumns(p.Columns)
	p.Table = "?" + w.export.Encode()
	if p.Responses, err = v.rows(list.Items, p.Columns); err != nil {
		return err
	}
	p.Pager = pagerOf(v, list, func(r *formsvc.Response) formsvc.ID { return r.ID })
	if searched > 0 {
		before, _ := strconv.Atoi(v.query("searched")) // by the pages before this one
		p.Searched = int64(max(before, 0) + searched)
		p.Pager.Older = fmt.Sprintf("%s&after=%s&searched=%d", p.Pager.First, last, p.Searched)
	}
	p.Until, p.Undo = isoTime(v.svc.Now().Add(time.Millisecond)), v.query("note") == "selected" && len(v.kept(undoCookie)) > 1
	return v.show(http.StatusOK, "campaign", v.campaign.Title, p)
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
		e.Labels, e.Files, file = true, v.address("/files")+"/", strings.Replace(file, "people", "responses", 1)
		e.Name = "responses-" + v.svc.Now().In(v.zone).Format(time.DateOnly)
	default:
		return formsvc.ErrNotFound
	}
	return v.ask("/v1/campaigns/"+string(v.campaign.ID)+"/"+file, &e, formsvc.ResponsesRead, formsvc.FilesRead)
}

// address returns the absolute address of a page.
func (v *visit) address(path string) string { return v.public(&url.URL{Path: v.base + path}) }

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
