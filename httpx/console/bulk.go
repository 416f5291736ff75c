package console

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// A bulkPage asks whether all responses of a view are to be deleted, or says how far a change of all is.
type bulkPage struct {
	bulk

	Fields        url.Values // of the form that goes on
	Going, Delete bool
	Total         int64 // how many match, 0 if that isn't known
}

// errBulk is the refusal of a form that no page has.
var errBulk = &refusal{http.StatusBadRequest, "The form can't be read", "Nothing more was changed. Go back, reload the page and try again."}

// changeSelected changes the status of the selected responses, or deletes them, or does that with all that match the view; or undoes it.
func (v *visit) changeSelected() error {
	do, path, status := v.field("do"), v.path(""), cmp.Or(v.field("newStatus"), v.field("status"))
	switch do {
	case "undo":
		return v.undo()
	case "ham":
		status = formsvc.StatusPending
	case "status":
		if asked, err := v.askStatus(status, path); asked || err != nil {
			return err
		}
	case "delete":
	default:
		return errBulk
	}
	former := url.Values{}
	if v.field("after") != "" {
		former = v.kept(undoCookie)
	}
	former.Set("to", status)
	change := func(id formsvc.ID) error {
		key := v.responseKey(id)
		if do == "delete" {
			return v.svc.Responses.Delete(v.ctx(), key, nil)
		}
		before, err := v.svc.Responses.Get(v.ctx(), key)
		if err == nil {
			_, err = v.svc.Responses.Update(v.ctx(), key, formsvc.ResponsePatch{Status: &status, IfVersion: before.Version})
		}
		if was := "s." + before.Status; err == nil && before.Status != status {
			former.Set(was, former.Get(was)+" "+string(id))
		}
		return err
	}
	switch which := v.field("which"); {
	case which == "all":
		return v.changeAll(change, former)
	case which != "" || v.field("after") != "":
		return errBulk
	}
	query, err := v.each(v.r.PostForm["response"], pageSize, change)
	v.keepFormer(former)
	return v.redirect(err, path, query)
}

// changeAll changes the responses that match the view, except those that came after its page. Each request goes on for a time.
func (v *visit) changeAll(change func(formsvc.ID) error, former url.Values) error {
	p := bulkPage{Delete: v.field("do") == "delete"}
	w, err := v.readView(&campaignPage{})
	if err != nil {
		return err
	}
	shown, err := time.Parse(isoLayout, v.field("until"))
	for name, n := range map[string]*int64{"n": &p.Changed, "refused": &p.Refused, "total": &p.Total} {
		*n, _ = strconv.ParseInt(v.field(name), 10, 64)
	}
	after := formsvc.ID(v.field("after"))
	if err != nil || len(v.wrong) > 0 || after != "" && !after.Valid() || min(p.Changed, p.Refused, p.Total) < 0 {
		return errBulk
	}
	if at := &w.query.Filter.CreatedBefore; at.IsZero() || shown.Before(*at) {
		*at = shown
	}
	if p.Delete && v.field("sure") == "" {
		list, whole, err := v.gather(w)
		if err != nil {
			return err
		}
		if whole {
			p.Total = int64(len(list))
		}
		if p.Total > 0 || !whole {
			return v.showBulk(&p, "")
		}
	}
	w.query.Page = formsvc.PageQuery{After: after, MaxBytes: maxPage}
	going, err := v.changeSome(w, &p.bulk, change)
	if err != nil {
		return err
	}
	if v.keepFormer(former); going {
		return v.showBulk(&p, w.query.Page.After)
	}
	return v.redirect(nil, v.path(""), v.told(&p.bulk))
}

// changeSome changes responses of the view for a time, at least one, and reports whether there are more after the last one, w.query.Page.After.
func (v *visit) changeSome(w *view, t *bulk, change func(formsvc.ID) error) (more bool, err error) {
	for until := time.Now().Add(v.h.deleteTime); ; {
		list, searched, last, err := v.find(w, pageSize, v.h.searchTime)
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			w.query.Page.After = list.Items[i].ID
			if err := v.tried(t, change(list.Items[i].ID)); err != nil {
				return false, err
			}
			if more = i+1 < len(list.Items) || list.More || searched > 0; more && !time.Now().Before(until) {
				return true, nil
			}
		}
		if searched > 0 {
			w.query.Page.After = last
		}
		if more = list.More || searched > 0; !more || !time.Now().Before(until) {
			return more, nil
		}
	}
}

// showBulk asks for, or goes on with, a change after a response.
func (v *visit) showBulk(p *bulkPage, after formsvc.ID) error {
	p.Going = after != ""
	p.Fields = maps.Clone(v.r.PostForm)
	for _, name := range []string{"token", "once", "response"} {
		p.Fields.Del(name)
	}
	for name, n := range map[string]int64{"n": p.Changed, "refused": p.Refused, "total": p.Total} {
		p.Fields.Set(name, strconv.FormatInt(n, 10))
	}
	p.Fields.Set("sure", "yes")
	p.Fields.Set("after", string(after))
	return v.show(http.StatusOK, "bulk", map[bool]string{true: "Delete responses", false: "Change responses"}[p.Delete], p)
}

// A bulk counts changes, and those that were refused.
type bulk struct{ Changed, Refused int64 }

// Done returns how many were tried.
func (b bulk) Done() int64 { return b.Changed + b.Refused }

// tried counts a change with that result. It returns errors of the server.
func (v *visit) tried(t *bulk, err error) error {
	switch {
	case err == nil:
		t.Changed++
	case v.ctx().Err() == nil && wire.ProblemOf(v.ctx(), err).Status < http.StatusInternalServerError:
		t.Refused++
	default:
		return err
	}
	return nil
}

// told returns the query of the list with a note of the counts.
func (v *visit) told(t *bulk) url.Values {
	query := v.noted("selected")
	query.Set("n", strconv.FormatInt(t.Changed, 10))
	query.Set("refused", strconv.FormatInt(t.Refused, 10))
	return query
}

// each changes each of these records, up to most, and returns the query of the page that says how many could be changed.
func (v *visit) each(ids []string, most int, change func(formsvc.ID) error) (url.Values, error) {
	var t bulk
	for _, text := range ids[:min(len(ids), most)] {
		if err := v.tried(&t, change(readID(text))); err != nil {
			return nil, err
		}
	}
	return v.told(&t), nil
}

// undoCookie keeps the former statuses of the responses whose status was changed last, of a campaign, whose path it has.
const (
	undoCookie = "formsvc_undo"
	undoFor    = 10 * time.Minute
	undoBytes  = 3_800 // of a cookie
	mostUndone = undoBytes / len(" 00000000-0000-0000-0000-000000000000")
)

// keepFormer keeps the status that was set, under "to", and the responses by their former status, after "s."; or "lost" if they are too many.
func (v *visit) keepFormer(former url.Values) {
	value := former.Encode()
	if len(value) > undoBytes || former.Has("lost") {
		value = "lost=1"
	}
	v.setCookie(undoCookie, value, v.base+v.path(""), undoFor)
}

// kept returns the values that a cookie keeps.
func (v *visit) kept(name string) url.Values {
	cookie, err := v.r.Cookie(name)
	if err != nil {
		return url.Values{}
	}
	values, _ := url.ParseQuery(cookie.Value) // what can't be read isn't kept
	return values
}

// undo gives responses the status back that they had before it was changed, unless it was changed again.
func (v *visit) undo() error {
	former, was, ids := v.kept(undoCookie), map[formsvc.ID]string{}, []string(nil)
	for name := range former {
		if status, ok := strings.CutPrefix(name, "s."); ok {
			for _, id := range strings.Fields(former.Get(name)) {
				was[readID(id)], ids = status, append(ids, id)
			}
		}
	}
	query, err := v.each(ids, mostUndone, func(id formsvc.ID) error {
		key := v.responseKey(id)
		r, err := v.svc.Responses.Get(v.ctx(), key)
		if err == nil && r.Status != former.Get("to") {
			err = formsvc.ErrStale
		}
		if err == nil {
			_, err = v.svc.Responses.Update(v.ctx(), key, formsvc.ResponsePatch{Status: new(was[id]), IfVersion: r.Version})
		}
		return err
	})
	v.keepFormer(nil)
	query.Set("note", "undone")
	return v.redirect(err, v.path(""), query)
}
