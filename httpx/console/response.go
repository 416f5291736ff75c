package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// Limits of a response's page, beside those in its template: the API has the rest.
const (
	shownRecords  = 100 // files, and signatures
	shownComments = 50
	shownHistory  = 100
)

type responsePage struct {
	Response   formsvc.Response
	Who        string
	Answers    []shownAnswer // in the order of the form
	Old        []shownAnswer // to questions that were removed
	Files      formsvc.Page[formsvc.File]
	Comments   formsvc.Page[formsvc.Comment]
	Signatures formsvc.Page[formsvc.Signature]
	History    []happening
	Happened   int        // how many events there are
	Later      bool       // whether later events may be missing from the history
	Statuses   []string   // that may follow
	AnyStatus  bool       // whether any other status may follow too
	Newer      formsvc.ID // the neighbours in the list that the visitor came from, "" for none
	Before     formsvc.ID
	Sorted     bool // whether that list isn't in the order of time
	Mails      []shownMail
	Held       string // why the response is held, "" if it isn't spam
	Ham        bool   // whether it can be told that it isn't spam
}

// who names the person of a response: by name, else by address, else the response by its reference.
func who(r *formsvc.Response) string {
	return cmp.Or(strings.TrimSpace(r.User.FirstName+" "+r.User.LastName), r.User.Email, r.Reference)
}

// heldText says why a response is spam, or returns "" if it isn't.
func (h *Handler) heldText(r *formsvc.Response) string {
	if r.Status != formsvc.StatusSpam {
		return ""
	}
	return cmp.Or(h.texts["held"][string(r.Held)], "It is held: "+string(r.Held)+".")
}

type shownAnswer struct {
	Label  string // or the name of a question without one
	Type   formsvc.ModuleType
	Values []string // as people read them
}

// A happening is an event of a response.
type happening struct {
	formsvc.Event
	Status string
	By     string // who did it; "" for the visitor
}

// responseKey returns the key of a response of the campaign.
func (v *visit) responseKey(id formsvc.ID) formsvc.ResponseKey {
	return formsvc.ResponseKey{AccountID: v.account(), CampaignID: v.campaign.ID, ID: id}
}

// response shows all about a response.
func (v *visit) response() error { return v.showResponse(http.StatusOK) }

func (v *visit) showResponse(status int) error {
	key := v.responseKey(v.id("response"))
	p := responsePage{}
	var err error
	if p.Response, err = v.svc.Responses.Get(v.ctx(), key); err != nil {
		return err
	}
	p.Who = who(&p.Response)
	p.Statuses, p.AnyStatus, _, err = v.statuses(p.Response.Status)
	if err = cmp.Or(err, p.readAnswers(v.campaign.Questions()), v.readRecords(&p), v.readHistory(&p), v.readMails(&p), v.readNeighbours(&p)); err != nil {
		return err
	}
	p.Held = v.h.heldText(&p.Response)
	if p.Held != "" {
		n := len(p.Statuses)
		p.Statuses = slices.DeleteFunc(p.Statuses, func(s string) bool { return s == formsvc.StatusPending })
		p.Ham = len(p.Statuses) < n
	}
	if slices.ContainsFunc(p.Files.Items, func(f formsvc.File) bool { return f.ContentType == "application/pdf" }) {
		v.w.Header().Set("Content-Security-Policy", policy+"; frame-src 'self'")
	}
	return v.show(status, "response", p.Who, p)
}

// readNeighbours finds the responses beside this one in the list that the visitor came from, unless a search doesn't find them in its time.
func (v *visit) readNeighbours(p *responsePage) error {
	wrong, id := v.wrong, p.Response.ID
	w, err := v.readView(&campaignPage{})
	v.wrong = wrong // the list says what is wrong with its filter
	if err != nil {
		return err
	}
	if list, sorted, err := v.sorted(w, true); err != nil || sorted {
		at := slices.IndexFunc(list, func(r formsvc.Response) bool { return r.ID == id })
		if p.Sorted = true; at > 0 {
			p.Newer = list[at-1].ID
		}
		if at >= 0 && at+1 < len(list) {
			p.Before = list[at+1].ID
		}
		return err
	}
	for _, newer := range []bool{true, false} {
		w.query.Page.After, w.query.Page.Ascending = id, newer
		list, _, _, err := v.find(w, 1, v.h.searchTime/2)
		switch {
		case err != nil:
			return err
		case len(list.Items) > 0 && newer:
			p.Newer = list.Items[0].ID
		case len(list.Items) > 0:
			p.Before = list.Items[0].ID
		}
	}
	return nil
}

// readAnswers reads the answers, in the order of the modules. Without any, no answer is an old one.
func (p *responsePage) readAnswers(asked []formsvc.Module) error {
	answers, err := p.Response.Answers.List()
	for i := range asked {
		m := &asked[i]
		at := slices.IndexFunc(answers, func(a formsvc.Answer) bool { return a.Name == m.Name })
		if at >= 0 {
			p.Answers = append(p.Answers, shownAnswer{cmp.Or(m.Label, m.Name), m.Type, shownAll(m, answers[at].Value)})
			answers = slices.Delete(answers, at, at+1)
		}
	}
	for _, a := range answers {
		p.Old = append(p.Old, shownAnswer{Label: a.Name, Values: a.Value})
	}
	if len(asked) == 0 {
		p.Answers, p.Old = p.Old, nil
	}
	return err
}

// LabelOf returns the label of a question, or its name.
func (p *page) LabelOf(name string) string { return labelIn(p.Campaign.Modules, name) }

// readRecords reads the newest files, signatures and comments.
func (v *visit) readRecords(p *responsePage) (err error) {
	p.Files, err = readNewest(v, shownRecords, v.svc.Files.List)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) { // without a blob store there are no files
		return err
	}
	if p.Signatures, err = readNewest(v, shownRecords, v.svc.Signatures.List); err != nil {
		return err
	}
	p.Comments, err = readNewest(v, shownComments, v.svc.Comments.List)
	return err
}

// readNewest reads the newest records of the response, and returns them as people read them: the oldest first.
func readNewest[T any](v *visit, most int, list func(context.Context, formsvc.ResponseKey, formsvc.PageQuery) (formsvc.Page[T], error)) (formsvc.Page[T], error) {
	page, err := list(v.ctx(), v.responseKey(v.id("response")), formsvc.PageQuery{Limit: most})
	slices.Reverse(page.Items)
	return page, err
}

// readHistory reads the events to show. Stores return the oldest, so the newest events of a long history may be
// missing.
func (v *visit) readHistory(p *responsePage) error {
	const most = 1000 // the largest limit
	events, err := v.svc.Events.About(v.ctx(), v.responseKey(v.id("response")), most)
	if err != nil {
		return err
	}
	size := formsvc.MaxPayload // for one more event
	for _, e := range events {
		size += len(e.Payload)
	}
	p.Later = len(events) == most || size > formsvc.DefaultEventBytes
	p.Happened = len(events)
	for _, e := range events[max(len(events)-shownHistory, 0):] {
		h := happening{Event: e}
		if parsed, err := webhook.ParseEvent(e.Payload); err == nil {
			h.Status = parsed.Data.Response.Status
			if a := parsed.Data.Actor; a.Type == webhook.ActorKey {
				h.By = strings.TrimSpace("key " + a.Name)
			} else {
				h.By = a.Name
			}
		}
		p.History = append(p.History, h)
	}
	return nil
}

func (v *visit) responsePath() string { return v.path("/responses/" + string(v.id("response"))) }

// changeStatus changes the status of a response. One that no response has is asked twice.
func (v *visit) changeStatus() error {
	status := v.field("status")
	if asked, err := v.askStatus(status, v.responsePath()); asked || err != nil {
		return err
	}
	_, err := v.svc.Responses.Update(v.ctx(), v.responseKey(v.id("response")), formsvc.ResponsePatch{Status: &status})
	if transition, ok := errors.AsType[*formsvc.TransitionError](err); ok {
		v.wrong = map[string]string{"status": "The status can't change from " + transition.From + " to " + transition.To + ". " + allowed(transition)}
		return v.showResponse(http.StatusConflict)
	}
	if v.invalid(err) {
		return v.showResponse(http.StatusUnprocessableEntity)
	}
	return v.redirect(err, v.responsePath(), v.noted("status"))
}

// noted returns the query of the list that the visitor came from, with a note.
func (v *visit) noted(note string) url.Values {
	query := v.viewed()
	query.Set("note", note)
	return query
}

type confirmPage struct {
	Status string
	Known  []string
	Path   string     // of the form
	Back   string     // the path to go back to
	Fields url.Values // of the form
}

// askStatus asks whether a status that no response of the campaign has and no workflow knows is meant, unless that was asked.
func (v *visit) askStatus(status, back string) (asked bool, err error) {
	known, others, _, err := v.statuses("")
	if err != nil || !others || status == "" || status == formsvc.StatusSpam || slices.Contains(known, status) || v.field("new") == status {
		return false, err
	}
	p := confirmPage{Status: status, Known: known, Path: v.r.URL.EscapedPath(), Back: back, Fields: url.Values{"new": {status}, "status": {status}}}
	for _, name := range []string{"view", "do", "response", "which", "until", "total"} {
		p.Fields[name] = v.r.PostForm[name]
	}
	return true, v.show(http.StatusUnprocessableEntity, "confirm", "A new status", p)
}

func allowed(e *formsvc.TransitionError) string {
	if len(e.Allowed) == 0 {
		return "It's final."
	}
	return "It can change to: " + strings.Join(e.Allowed, ", ") + "."
}

// comment adds a comment to a response, with the visitor as author.
func (v *visit) comment() error {
	in := formsvc.CommentInput{Body: v.r.PostForm.Get("body"), Author: short(formsvc.MaxAuthor, v.who.Name)}
	_, _, err := once(v, func(svc *formsvc.Service) (formsvc.Comment, error) {
		return svc.Comments.Create(v.ctx(), v.responseKey(v.id("response")), in)
	})
	if v.invalid(err) {
		return v.showResponse(http.StatusUnprocessableEntity)
	}
	return v.redirect(err, v.responsePath(), v.noted("commented"))
}

// deleteResponse removes a response.
func (v *visit) deleteResponse() error {
	err := v.svc.Responses.Delete(v.ctx(), v.responseKey(v.id("response")), nil)
	return v.redirect(err, v.path(""), v.noted("gone"))
}
