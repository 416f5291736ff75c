package console

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// A view is what the table shows of the responses, as its address says. Neighbours, exports and changes of all obey it.
type view struct {
	query  formsvc.ResponseQuery
	search *formsvc.Search // nil: the query finds all
	export url.Values      // the API's query with the same filter
}

// readView reads the view of the address, and what the page says about it.
func (v *visit) readView(p *campaignPage) (*view, error) {
	query := v.viewed()
	if v.sort = query.Get("sort"); v.sortKey() == nil {
		v.sort = ""
	}
	w := &view{query: formsvc.ResponseQuery{AccountID: v.account(), CampaignID: v.campaign.ID, Page: v.page(), NoTotal: true}, export: url.Values{}}
	filter := &w.query.Filter
	p.Filter = map[string]string{"sort": query.Get("sort"), "order": query.Get("order"), "ask": v.query("ask")}
	for _, c := range []struct {
		name, words string
		at          *time.Time // nil: a text
	}{
		{"status", "with status %s", nil}, {"email", "from %s", nil}, {"reference", "with reference %s", nil},
		{"createdAfter", "submitted since %s", &filter.CreatedAfter}, {"createdBefore", "submitted before %s", &filter.CreatedBefore},
		{"search", "containing “%s”", nil},
	} {
		text := strings.TrimSpace(query.Get(c.name))
		p.Filter[c.name] = text
		if text == "" {
			continue
		}
		if err := formsvc.CheckText(text); err != nil {
			return nil, &refusal{http.StatusBadRequest, "The filter can't be read", "The text isn't valid UTF-8 or has a NUL character."}
		}
		shown := text
		if c.at != nil {
			at, ok := dayIn(text, v.zone)
			if !ok {
				v.wrong = map[string]string{"filter": badDay(v.zone)}
				continue
			}
			*c.at, text, shown = at, isoTime(at), v.dayText(at)
		}
		w.export.Set(c.name, text)
		if p.IsSpam = p.Filter["status"] == formsvc.StatusSpam; !p.IsSpam || c.name != "status" {
			p.Terms = append(p.Terms, term{fmt.Sprintf(c.words, short(100, shown)), v.without(c.name, "after")})
		}
	}
	filter.Email, filter.Reference, filter.Status = p.Filter["email"], p.Filter["reference"], w.export["status"]
	if !p.IsSpam {
		filter.NotStatus = formsvc.StatusSpam
	}
	if v.sort == "" && w.query.Page.Ascending {
		w.export.Set("order", "asc")
	}
	search := formsvc.NewSearch(p.Filter["search"], v.campaign.Modules, v.zone)
	if v.readConditions(p, search, w.export); p.Filter["search"] != "" || p.Answered {
		w.search = search
	}
	return w, nil
}

// Limits of a search, and of what is read to sort or to count.
const (
	searchTime = 60 * time.Millisecond // that one page searches for; a link goes on from there
	searchStep = 250                   // responses that it reads at once
	foundBytes = 8 << 20
	mostSorted = 2000 // responses
)

// find returns up to most of the next responses of the view by date. searched is not 0 if the time of a search was over, or if they have
// too many bytes, after the response last. It reads at least one step.
func (v *visit) find(w *view, most int, limit time.Duration) (found formsvc.Page[formsvc.Response], searched int, last formsvc.ID, err error) {
	q, size := w.query, 0
	if q.Page.Limit = most; w.search == nil && most <= pageSize {
		found, err = v.svc.Responses.List(v.ctx(), q)
		return found, 0, "", err
	}
	q.Page.Limit, q.Page.MaxBytes = searchStep, maxPage
	for until := time.Now().Add(limit); ; {
		list, err := v.svc.Responses.List(v.ctx(), q)
		if err != nil {
			return found, 0, "", err
		}
		for i := range list.Items {
			r := &list.Items[i]
			searched, q.Page.After = searched+1, r.ID
			if w.search != nil && !w.search.Finds(r) {
				continue
			}
			size += r.Size()
			if found.Items = append(found.Items, *r); len(found.Items) == most {
				found.More = list.More || i < len(list.Items)-1
				return found, 0, "", nil
			}
		}
		switch {
		case !list.More:
			return found, 0, "", nil
		case size > foundBytes || !time.Now().Before(until):
			return found, searched, q.Page.After, nil
		}
	}
}

// gather returns all responses of the view by date, newest first, unless they are too many or take too long to find.
func (v *visit) gather(w *view) (list []formsvc.Response, whole bool, err error) {
	all := view{query: w.query, search: w.search}
	all.query.Page = formsvc.PageQuery{}
	found, searched, _, err := v.find(&all, mostSorted+1, v.h.searchTime)
	return found.Items, err == nil && searched == 0 && len(found.Items) <= mostSorted, err
}

// sortKey returns a function for the keys that the table is sorted by, or nil.
func (v *visit) sortKey() func(*formsvc.Response) string {
	var text *formsvc.Module
	switch id, answer := strings.CutPrefix(v.sort, "a."); {
	case id == changedColumn:
		return func(r *formsvc.Response) string { return isoTime(r.UpdatedAt) }
	case answer:
		m := &formsvc.Module{Name: id}
		if i := slices.IndexFunc(v.campaign.Modules, func(m formsvc.Module) bool { return columnID(m.Name) == id }); i >= 0 {
			m = &v.campaign.Modules[i]
		}
		return func(r *formsvc.Response) string {
			values, _ := r.Answers.Get(m.Name)
			return m.SortKey(values...)
		}
	}
	return map[string]func(*formsvc.Response) string{
		"from":      func(r *formsvc.Response) string { return text.SortKey(who(r)) },
		"status":    func(r *formsvc.Response) string { return text.SortKey(r.Status) },
		"reference": func(r *formsvc.Response) string { return text.SortKey(r.Reference) },
	}[v.sort]
}

// sorted returns all responses of the view, sorted by its column; those without a value last. It is not ok if the view is by date, or if
// they are too many, few being false if that is known. The view is by date then.
func (v *visit) sorted(w *view, few bool) (list []formsvc.Response, ok bool, err error) {
	if v.sort != "" && few {
		list, ok, err = v.gather(w)
	}
	if !ok {
		v.sort = ""
		w.query.Page.Ascending = v.ascending()
		return nil, false, err
	}
	keys, key, ascending := make(map[formsvc.ID]string, len(list)), v.sortKey(), v.ascending()
	for i := range list {
		keys[list[i].ID] = key(&list[i])
	}
	slices.SortFunc(list, func(a, b formsvc.Response) int {
		x, y := keys[a.ID], keys[b.ID]
		if !ascending && x != "" && y != "" {
			x, y = y, x
		}
		none := map[bool]int{true: 1}
		return cmp.Or(none[x == ""]-none[y == ""], strings.Compare(x, y), strings.Compare(string(b.ID), string(a.ID)))
	})
	return list, true, nil
}

// table returns the responses of the page, and counts those of the view where that costs little.
func (v *visit) table(w *view, p *campaignPage) (list formsvc.Page[formsvc.Response], searched int, last formsvc.ID, err error) {
	rest, by := w.query.Filter, v.sort
	rest.Status, rest.NotStatus = nil, ""
	if p.Counted = w.search == nil && rest.IsZero(); p.Counted {
		p.Matching = v.campaign.ResponseCount
		for _, status := range w.query.Filter.Status {
			p.Matching = p.Counts[status]
		}
	}
	all, sorted, err := v.sorted(w, p.Matching <= mostSorted)
	if err != nil {
		return list, 0, "", err
	}
	if p.Unsorted = by != "" && !sorted; sorted {
		from := slices.IndexFunc(all, func(r formsvc.Response) bool { return r.ID == w.query.Page.After }) + 1
		end := min(from+pageSize, len(all))
		list.Items, list.More = all[from:end], end < len(all)
		p.Matching, p.Counted = int64(len(all)), true
		return list, 0, "", nil
	}
	limit := v.h.searchTime
	if p.Unsorted {
		limit /= 3 // the attempt to sort took the rest
	}
	list, searched, last, err = v.find(w, pageSize, limit)
	if first := w.query.Page.After == ""; first && searched == 0 && !p.Counted {
		p.Matching, p.Counted = int64(len(list.Items)), !list.More
	}
	return list, searched, last, err
}

// Heading returns a heading of the table: its label, the address of the table sorted by it, and how it is sorted now.
func (p *page) Heading(by, label string) map[string]string {
	v := p.visit
	query, now, ascending := v.viewed(), v.sort == by, v.ascending()
	query.Del("after")
	query.Del("order")
	query.Set("sort", by)
	if by == "" {
		query.Del("sort")
	}
	sorted := map[bool]string{true: "ascending", false: "descending"}[ascending]
	switch {
	case !now:
		sorted = ""
	case by == "" && !ascending:
		query.Set("order", "asc")
	case by != "" && ascending:
		query.Set("order", "desc")
	}
	return map[string]string{"Label": label, "Link": "?" + query.Encode(), "Sorted": sorted}
}

// saveView gives the view that the visitor sees a name, with its columns, or deletes the view of that name.
func (v *visit) saveView() error {
	query, name, path := v.noted("view-saved"), v.field("name"), v.path("")
	if v.field("do") == "delete" {
		query.Set("note", "view-deleted")
		return v.redirect(v.svc.Campaigns.DeleteView(v.ctx(), v.campaign.Key(), name), path, query)
	}
	if slices.ContainsFunc(v.campaign.Views, func(w formsvc.View) bool { return w.Name == name }) {
		query.Set("note", "view-replaced")
	}
	kept := v.viewed()
	kept.Del("after")
	if !kept.Has("c") {
		kept["c"] = v.kept(columnsCookie)["c"]
	}
	err := v.svc.Campaigns.SaveView(v.ctx(), v.campaign.Key(), formsvc.View{Name: name, Query: kept.Encode()})
	switch invalid := new(formsvc.ValidationError); {
	case errors.As(err, &invalid):
		return &refusal{422, "The view wasn't saved", "Its " + place(invalid.Fields[0].Pointer) + " " + invalid.Fields[0].Detail + "."}
	case errors.Is(err, formsvc.ErrLimit):
		return &refusal{409, "The view wasn't saved", "A form can have 20 views. Delete one first."}
	}
	query["c"] = kept["c"]
	return v.redirect(err, path, query)
}

// Viewed returns the name of the view that the page shows, or "".
func (p *page) Viewed() string {
	query := p.visit.viewed()
	query.Del("after")
	i := slices.IndexFunc(p.Campaign.Views, func(w formsvc.View) bool { return w.Query == query.Encode() })
	if i < 0 {
		return ""
	}
	return p.Campaign.Views[i].Name
}

// Limits of a filter by answers.
const (
	askedAlways = 12  // questions that it shows unless they are chosen
	mostOptions = 100 // of a question; another one can be typed
)

// An asked is a question that the table is filtered by.
type asked struct {
	Label, ID      string
	Type           formsvc.ModuleType
	Options        []choice // of choices, yes/no questions and consent
	More           bool     // whether there are other ones
	Text, From, To string   // as typed
}

// readConditions adds the conditions on answers to a search, to the query of the export, and to the page. The page names invalid ones,
// which the search leaves out.
func (v *visit) readConditions(p *campaignPage, search *formsvc.Search, export url.Values) {
	query, modules := v.viewed(), slices.Clone(v.campaign.Questions())
	of := func(id string) func(formsvc.Module) bool {
		return func(m formsvc.Module) bool { return columnID(m.Name) == id }
	}
	for _, key := range slices.Sorted(maps.Keys(query)) {
		kind, id, ok := strings.Cut(key, ".")
		if ok && (kind == "a" || kind == "from" || kind == "to") && !slices.ContainsFunc(modules, of(id)) {
			modules = append(modules, formsvc.Module{Name: id, Label: id + " (removed)"})
		}
	}
	for i := range modules {
		m := &modules[i]
		q, f, words := readAsked(m, query)
		keys := []string{"a." + q.ID, "from." + q.ID, "to." + q.ID}
		given := len(f.Any) > 0 || f.From+f.To != ""
		switch {
		case m.Type == formsvc.FileModule:
			continue
		case given || len(v.campaign.Modules) <= askedAlways || v.query("ask") == q.ID:
			p.Asked = append(p.Asked, q)
		default:
			p.Unasked = append(p.Unasked, choice{Value: q.ID, Text: q.Label})
		}
		if !given {
			continue
		}
		p.Answered = true
		if invalid, ok := errors.AsType[*formsvc.ValidationError](search.Where(m.Name, f)); ok {
			v.wrong = map[string]string{"filter": q.Label + ": the value " + invalid.Fields[0].Detail + ". The filter leaves it out.", keys[0]: q.Label + " " + invalid.Fields[0].Detail + "."}
			continue
		}
		p.Terms = append(p.Terms, term{q.Label + " " + words, v.without(append(keys, "after")...)})
		for name, values := range map[string][]string{"answer": f.Any, "answerFrom": {f.From}, "answerTo": {f.To}} {
			if strings.Join(values, "") != "" {
				export[name+"["+m.Name+"]"] = values
			}
		}
	}
}

// readAsked reads the condition on the answers to a question, and describes it.
func readAsked(m *formsvc.Module, query url.Values) (q asked, f formsvc.AnswerFilter, words string) {
	id := columnID(m.Name)
	q = asked{Label: short(shownCell, cmp.Or(m.Label, m.Name)), ID: id, Type: m.Type}
	options, given := m.Choices(), slices.Clone(query["a."+id])
	switch {
	case m.Type.Ranged():
		options, given, q.From, q.To = nil, nil, strings.TrimSpace(query.Get("from."+id)), strings.TrimSpace(query.Get("to."+id))
		f.From, f.To = q.From, q.To
	case options == nil:
		q.Text = strings.TrimSpace(query.Get("a." + id))
		if q.Text != "" {
			f.Any = []string{q.Text}
		}
		return q, f, "contains “" + short(100, q.Text) + "”"
	}
	for _, option := range options {
		c := choice{Value: columnID(option), Text: m.Shown(option)}
		c.Chosen = slices.Contains(given, c.Value) || slices.Contains(given, c.Text)
		if given = slices.DeleteFunc(given, func(s string) bool { return s == c.Value || s == c.Text }); c.Chosen {
			f.Any = append(f.Any, option)
		}
		if q.More = len(q.Options) >= mostOptions; c.Chosen || !q.More {
			q.Options = append(q.Options, c)
		}
	}
	for _, old := range given { // a choice that was removed
		if old = strings.TrimSpace(old); old != "" {
			f.Any, q.Options = append(f.Any, old), append(q.Options, choice{Value: old, Text: old, Chosen: true})
		}
	}
	q.More = q.More || m.Other
	shown := make([]string, len(f.Any))
	for i, value := range f.Any {
		shown[i] = short(shownCell, m.Shown(value))
	}
	if len(shown) > 0 {
		return q, f, "is " + strings.Join(shown, " or ")
	}
	words = "from " + dayWords(f.From) + " to " + dayWords(f.To)
	if f.From == "" {
		words = "up to " + dayWords(f.To)
	}
	return q, f, strings.TrimSuffix(words, " to ")
}

// dayWords writes a day for people, or returns another text.
func dayWords(text string) string {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		text = day.Format("2 Jan 2006")
	}
	return short(shownCell, text)
}
