package console

import (
	"cmp"
	"fmt"
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
	p.Filter = map[string]string{}
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
			at, ok := v.day(text)
			if !ok {
				v.wrong = map[string]string{"filter": v.badDay()}
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
	searchTime  = 60 * time.Millisecond // that one page searches for; a link goes on from there
	sortTime    = 5                     // times that
	searchStep  = 250                   // responses that it reads at once
	mostSorted  = 2000                  // responses
	sortedBytes = 8 << 20
)

// find returns up to most of the next responses of the view by date. searched is not 0 if the time of a search was over, after the
// response last. It reads at least one step.
func (v *visit) find(w *view, most int) (found formsvc.Page[formsvc.Response], searched int, last formsvc.ID, err error) {
	q := w.query
	if q.Page.Limit = most; w.search == nil {
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
			if !w.search.Finds(r) {
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

// gather returns all responses of the view by date, newest first, unless they are too many or take too long to find.
func (v *visit) gather(w *view) (list []formsvc.Response, whole bool, err error) {
	q, size, until := w.query, 0, time.Now().Add(sortTime*v.h.searchTime)
	page := formsvc.PageQuery{Limit: searchStep, MaxBytes: maxPage}
	for r, err := range formsvc.All(page, func(page formsvc.PageQuery) (formsvc.Page[formsvc.Response], error) {
		q.Page = page
		return v.svc.Responses.List(v.ctx(), q)
	}) {
		if err != nil {
			return nil, false, err
		}
		if w.search != nil && !w.search.Finds(r) {
			size-- // so that the time is looked at
		} else {
			list, size = append(list, *r), size+r.Size()
		}
		if len(list) > mostSorted || size > sortedBytes || time.Now().After(until) {
			return nil, false, nil
		}
	}
	return list, true, nil
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
	counted := w.search == nil && len(w.export) == len(w.export["status"])
	if _, ordered := w.export["order"]; ordered {
		counted = w.search == nil && len(w.export) == 1+len(w.export["status"])
	}
	p.Matching = v.campaign.ResponseCount
	for _, status := range w.query.Filter.Status {
		p.Matching = p.Counts[status]
	}
	by := v.sort
	all, sorted, err := v.sorted(w, !counted || p.Matching <= mostSorted)
	if err != nil {
		return list, 0, "", err
	}
	if p.Sorted, p.Unsorted = sorted, by != "" && !sorted; sorted {
		from := slices.IndexFunc(all, func(r formsvc.Response) bool { return r.ID == w.query.Page.After }) + 1
		end := min(from+pageSize, len(all))
		list.Items, list.More, p.Matching, counted = all[from:end], end < len(all), int64(len(all)), true
	} else if list, searched, last, err = v.find(w, pageSize); err != nil {
		return list, 0, "", err
	}
	switch first := w.query.Page.After == ""; {
	case counted:
	case first && !list.More && searched == 0:
		p.Matching = int64(len(list.Items))
	default:
		if p.Matching = 0; first && list.More {
			p.Match = fmt.Sprintf("More than %d responses match.", pageSize)
		}
		return list, searched, last, nil
	}
	p.Match = thousands(p.Matching) + map[bool]string{true: " response matches.", false: " responses match."}[p.Matching == 1]
	return list, searched, last, nil
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
