package console

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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

// Limits of the table of responses.
const (
	usualColumns = 4  // answers shown unless the visitor chooses
	maxColumns   = 12 // answers
	shownCell    = 60 // characters of an answer
	shownFiles   = 5
)

// A column is an answer that the table of responses can show, files, or when the response changed.
type column struct {
	Name, Label string
	ID          string // in addresses
	Shown       bool   // whether the table has it
	module      *formsvc.Module
}

// Files reports whether it has files.
func (c column) Files() bool { return c.module != nil && c.module.Type == formsvc.FileModule }

// A row is a response in the table.
type row struct {
	formsvc.Response
	Cells []cell // by column
	Why   string // why it is spam
}

// A cell has a text, files, or a time.
type cell struct {
	Text  string
	Files formsvc.Page[formsvc.File]
	At    *time.Time
}

// changedColumn is the name of the column with the time of the last change, which isn't shown unless it is chosen.
const changedColumn = "~changed"

// columnsCookie keeps the columns that were chosen last for a campaign, for addresses without columns. Its path is the campaign's.
const columnsCookie = "formsvc_columns"

// columnID returns a short text for a question in addresses: its name, or a hash of a long one.
func columnID(name string) string {
	if len(url.QueryEscape(name)) <= longID {
		return name
	}
	return "~" + hash(name)
}

// hash returns a short text that differs for other texts.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// longID is the limit of a name in an address, in bytes.
const longID = 40

// columns returns the columns to show, in order, and all others after them: those of the address, or those chosen last, or the first.
// Removed questions come last. They are found in the address and in the responses on the page; the summary leads to all of them.
func (v *visit) columns(list []formsvc.Response) (shown, all []column) {
	asked := v.campaign.Questions()
	chosen, given := v.viewed()["c"]
	last, before := v.kept(columnsCookie)["c"]
	switch {
	case given:
	case before:
		chosen = last
	default:
		for i := range asked {
			if t := asked[i].Type; t != formsvc.FileModule && t != formsvc.LongTextModule && len(chosen) < usualColumns {
				chosen = append(chosen, columnID(asked[i].Name))
			}
		}
	}
	chosen = chosen[:min(len(chosen), maxColumns)]
	add := func(name, label string, m *formsvc.Module) {
		all = append(all, column{Name: name, Label: short(shownCell, label), ID: columnID(name), module: m})
	}
	for i := range asked {
		if m := &asked[i]; m.Type != formsvc.FileModule || v.who.permits(formsvc.FilesRead) {
			add(m.Name, cmp.Or(m.Label, m.Name), m)
		}
	}
	add(changedColumn, "Changed", nil)
	removed := map[bool]string{true: " (removed)"}[len(asked) > 0]
	for _, name := range v.oldNames(list, chosen) {
		add(name, name+removed, nil)
	}
	for _, id := range chosen {
		if i := slices.IndexFunc(all, func(c column) bool { return c.ID == id }); i >= 0 {
			all[i].Shown = true
			shown, all = append(shown, all[i]), slices.Delete(all, i, i+1)
		}
	}
	return shown, slices.Concat(shown, all)
}

// mostOld is the limit of names of removed questions.
const mostOld = 50

// eachAnswer calls do with each answer. Stored answers can be read, so it has no error.
func eachAnswer(list []formsvc.Response, do func(name string, values []string)) {
	for i := range list {
		_ = list[i].Answers.Each(func(name string, values []string) error {
			do(name, values)
			return nil
		})
	}
}

// oldNames returns the names of answers that no question has, sorted.
func (v *visit) oldNames(list []formsvc.Response, chosen []string) []string {
	old, asked := map[string]bool{}, map[string]bool{"": true}
	for _, m := range v.campaign.Questions() {
		name := m.Name
		asked[name], asked[columnID(name)] = true, true
	}
	for _, id := range chosen {
		if !strings.HasPrefix(id, "~") && !asked[id] {
			old[id] = true
		}
	}
	eachAnswer(list, func(name string, values []string) {
		if len(values) > 0 && !asked[name] && len(old) < mostOld {
			old[name] = true
		}
	})
	return slices.Sorted(maps.Keys(old))
}

// chooseColumns keeps the selected columns in the order of the form, with one of them moved if that was its button.
func (v *visit) chooseColumns() error {
	chosen := slices.Clone(v.r.PostForm["column"])
	move, moved, _ := strings.Cut(v.field("do"), ".")
	if i, step := slices.Index(chosen, moved), map[string]int{"up": -1, "down": 1}[move]; i >= 0 && i+step >= 0 && i+step < len(chosen) {
		chosen[i], chosen[i+step] = chosen[i+step], chosen[i]
	}
	query, path := v.viewed(), v.path("")
	if len(chosen) > maxColumns {
		chosen = chosen[:maxColumns]
		query.Set("note", "columns-cut")
	}
	if query["c"] = chosen; len(chosen) == 0 {
		query["c"] = []string{""} // none, not the usual ones
	}
	v.setCookie(columnsCookie, url.Values{"c": query["c"]}.Encode(), v.base+path, 400*24*time.Hour)
	query.Set("columns", "open")
	return v.redirect(nil, path, query)
}

// tableColumns returns the columns of the table as the API's export names them.
func tableColumns(answers []column) []string {
	names := []string{"reference", "status"}
	for i := range answers {
		switch c := &answers[i]; {
		case c.Name == changedColumn:
			names = append(names, "updatedAt")
		case !c.Files(): // files have columns of their own
			names = append(names, "responses."+c.Name)
		}
	}
	return append(names, "firstName", "lastName", "email", "createdAt")
}

// rows returns the responses with their answers by column.
func (v *visit) rows(list []formsvc.Response, shown []column) ([]row, error) {
	at := make(map[string]int, len(shown))
	for i := range shown {
		at[shown[i].Name] = i
	}
	table := make([]row, len(list))
	for i := range list {
		table[i] = row{Response: list[i], Cells: make([]cell, len(shown)), Why: v.h.heldText(&list[i])}
		err := list[i].Answers.Each(func(name string, values []string) error {
			if n, ok := at[name]; ok {
				table[i].Cells[n].Text = short(shownCell, shown[n].module.ShownValues(values))
			}
			return nil
		})
		if n, ok := at[changedColumn]; ok {
			table[i].Cells[n].At = &table[i].UpdatedAt
		}
		if err = cmp.Or(err, v.addFiles(&table[i], shown, at)); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// addFiles adds the files of a response to their columns, if there are any. at has the places of the columns.
func (v *visit) addFiles(r *row, shown []column, at map[string]int) error {
	if !slices.ContainsFunc(shown, column.Files) {
		return nil
	}
	list, err := v.svc.Files.List(v.ctx(), r.Key(), formsvc.PageQuery{Limit: shownRecords})
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, formsvc.ErrNotFound) { // without a blob store, or deleted meanwhile
		return nil
	}
	for i := range list.Items {
		if n, ok := at[list.Items[i].Module]; ok && shown[n].Files() {
			files := &r.Cells[n].Files
			if files.Total++; files.Total <= shownFiles {
				files.Items = append(files.Items, list.Items[i])
			}
		}
	}
	return err
}
