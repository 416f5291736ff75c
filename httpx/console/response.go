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

// Limits of a response's page: the API has the rest.
const (
	shownAnswers  = 200
	shownValue    = 500 // characters of one value
	shownRecords  = 100 // files, and signatures
	shownComments = 50
	shownComment  = 4000 // characters of one comment
	shownHistory  = 100
)

// Bytes of HTML for a response, without its history and the layout: in all, and reserved for each part whatever comes
// before it. One comment always fits.
const (
	responseBytes  = 110_000
	signatureBytes = 8_000
	fileBytes      = 8_000
	commentBytes   = 28_000
)

// Bytes of HTML around one answer, and at most around another record, without the path that the pages are under.
const (
	answerMarkup = len("\n<dt> <code></code></dt>\n")
	recordMarkup = 300
	linkMarkup   = len(`<a href="mailto:" rel="noopener noreferrer" target="_blank"></a>`)
)

type responsePage struct {
	Response   formsvc.Response
	Answers    []shownAnswer
	Cut        bool // whether some answers are cut or left out
	Files      []formsvc.File
	Comments   []formsvc.Comment
	Signatures []formsvc.Signature
	Older      older
	History    []happening
	Later      bool       // whether later events may be missing from the history
	Statuses   []string   // that may follow
	AnyStatus  bool       // whether any other status may follow too
	Newer      formsvc.ID // the neighbours in the list that the visitor came from, "" for none
	Before     formsvc.ID
	View       string // the query of that list
	Suffix     string // the same for a link, with its question mark
	Held       string // why the response is held, "" if it isn't spam
	Ham        bool   // whether it can be told that it isn't spam
}

// heldTexts says why a response is held.
var heldTexts = map[formsvc.HoldReason]string{ //nolint:gochecknoglobals // immutable
	formsvc.NotHeld:    "Somebody marked it as spam.",
	formsvc.HeldTrap:   "A field that people don't see was filled in, as programs do.",
	formsvc.HeldQuick:  "The form was sent sooner after it was shown than people usually need.",
	formsvc.HeldJudged: "The spam filter of this server called it spam.",
}

// heldText says why a response is spam, or returns "" if it isn't.
func heldText(r *formsvc.Response) string {
	if r.Status != formsvc.StatusSpam {
		return ""
	}
	return cmp.Or(heldTexts[r.Held], "It is held: "+string(r.Held)+".")
}

// older counts the records that aren't shown.
type older struct{ Files, Comments, Signatures, History int64 }

type shownAnswer struct {
	Label  string
	Name   string
	Type   formsvc.ModuleType
	Values []string // as people read them
}

// A happening is an event of a response.
type happening struct {
	formsvc.Event
	Status string
}

func (v *visit) responseKey() formsvc.ResponseKey {
	return formsvc.ResponseKey{AccountID: v.account(), CampaignID: v.campaign.ID, ID: v.id("response")}
}

// response shows all about a response.
func (v *visit) response() error { return v.showResponse(http.StatusOK) }

func (v *visit) showResponse(status int) error {
	key := v.responseKey()
	p := responsePage{}
	var err error
	if p.Response, err = v.svc.Responses.Get(v.ctx(), key); err != nil {
		return err
	}
	b := &budget{left: responseBytes, kept: fileBytes + signatureBytes + commentBytes}
	if err = p.readAnswers(b, v.campaign.Modules); err != nil {
		return err
	}
	if err = v.readRecords(b, &p); err != nil {
		return err
	}
	if err = v.readHistory(&p); err != nil {
		return err
	}
	if p.Newer, err = v.neighbour(key.ID, true); err != nil {
		return err
	}
	if p.Before, err = v.neighbour(key.ID, false); err != nil {
		return err
	}
	if p.Statuses, p.AnyStatus, _, err = v.statuses(p.Response.Status); err != nil {
		return err
	}
	p.View, p.Suffix, p.Held = v.view(), v.suffix(), heldText(&p.Response)
	if p.Held != "" {
		n := len(p.Statuses)
		p.Statuses = slices.DeleteFunc(p.Statuses, func(s string) bool { return s == formsvc.StatusPending })
		p.Ham = len(p.Statuses) < n
	}
	return v.show(status, "response", "Response "+p.Response.Reference, p)
}

// neighbour returns the next newer or older response of the list that the visitor came from, or "" if there is none, or none that a
// search finds in its time.
func (v *visit) neighbour(id formsvc.ID, newer bool) (formsvc.ID, error) {
	wrong := v.wrong
	q, _, err := v.readFilter(&campaignPage{})
	v.wrong = wrong // the list says what is wrong with its filter
	if err != nil {
		return "", err
	}
	q.Page.After, q.Page.Ascending = id, newer
	list, _, _, err := v.find(q, strings.TrimSpace(v.viewed().Get("search")), 1)
	if err != nil || len(list.Items) == 0 {
		return "", err
	}
	return list.Items[0].ID, nil
}

// readAnswers chooses the answers to show, in the order of the modules.
func (p *responsePage) readAnswers(b *budget, asked []formsvc.Module) error {
	modules := map[string]*formsvc.Module{}
	for i := range asked {
		modules[asked[i].Name] = &asked[i]
	}
	return p.Response.Answers.Each(func(name string, values []string) error {
		m := cmp.Or(modules[name], &formsvc.Module{})
		a := shownAnswer{Label: short(200, m.Label), Name: short(120, name), Type: m.Type}
		if len(p.Answers) == shownAnswers || !b.take(answerMarkup+escaped(a.Label, a.Name)) {
			p.Cut = true
			return nil
		}
		for _, value := range values {
			value = m.Shown(value)
			shown := short(shownValue, value)
			cost := len("<dd></dd>") + escaped(shown)
			if shown != value {
				p.Cut, a.Type = true, "" // a link would be wrong
			} else if a.Type == formsvc.URLModule || a.Type == formsvc.EmailModule {
				cost = linkMarkup + 4*cost // escaped once more in the link
			}
			if !b.take(cost) {
				p.Cut = true
				break
			}
			a.Values = append(a.Values, shown)
		}
		if len(a.Values) > 0 || len(values) == 0 {
			p.Answers = append(p.Answers, a)
		}
		return nil
	})
}

// readRecords chooses the files, signatures and comments to show.
func (v *visit) readRecords(b *budget, p *responsePage) (err error) {
	p.Files, p.Older.Files, err = readNewest(v, b, fileBytes, shownRecords, v.svc.Files.List, func(f *formsvc.File) int {
		f.Name, f.Module = short(120, f.Name), short(60, f.Module)
		return recordMarkup + len(v.base) + escaped(f.Name, f.Module)
	})
	if err != nil && !errors.Is(err, errors.ErrUnsupported) { // without a blob store there are no files
		return err
	}
	p.Signatures, p.Older.Signatures, err = readNewest(v, b, signatureBytes, shownRecords, v.svc.Signatures.List, func(s *formsvc.Signature) int {
		s.Signer.FirstName, s.Signer.LastName, s.Provider = short(60, s.Signer.FirstName), short(60, s.Signer.LastName), short(60, s.Provider)
		return recordMarkup + escaped(s.Signer.FirstName, s.Signer.LastName, s.Signer.Email, s.Provider)
	})
	if err != nil {
		return err
	}
	p.Comments, p.Older.Comments, err = readNewest(v, b, commentBytes, shownComments, v.svc.Comments.List, func(c *formsvc.Comment) int {
		c.Body, c.Author = short(shownComment, c.Body), short(100, c.Author)
		return recordMarkup + escaped(c.Body, c.Author)
	})
	return err
}

// readNewest reads the newest records of the response that fit, and counts the older ones. cut cuts the texts of a
// record, and returns the bytes that it takes.
func readNewest[T any](v *visit, b *budget, kept, most int,
	list func(context.Context, formsvc.ResponseKey, formsvc.PageQuery) (formsvc.Page[T], error), cut func(*T) int,
) (shown []T, older int64, err error) {
	b.kept -= kept
	page, err := list(v.ctx(), v.responseKey(), formsvc.PageQuery{Limit: most})
	shown = newest(b, page.Items, cut)
	return shown, page.Total - int64(len(shown)), err
}

// readHistory reads the events to show. Stores return the oldest, so the newest events of a long history may be
// missing.
func (v *visit) readHistory(p *responsePage) error {
	const most = 1000 // the largest limit
	events, err := v.svc.Events.About(v.ctx(), v.responseKey(), most)
	if err != nil {
		return err
	}
	size := formsvc.MaxPayload // for one more event
	for _, e := range events {
		size += len(e.Payload)
	}
	p.Later = len(events) == most || size > formsvc.DefaultEventBytes
	first := max(len(events)-shownHistory, 0)
	p.Older.History = int64(first)
	for _, e := range events[first:] {
		h := happening{Event: e}
		if parsed, err := webhook.ParseEvent(e.Payload); err == nil {
			h.Status = parsed.Data.Response.Status
		}
		p.History = append(p.History, h)
	}
	return nil
}

func (v *visit) responsePath() string {
	return "/campaigns/" + string(v.campaign.ID) + "/responses/" + string(v.id("response"))
}

// changeStatus changes the status of a response. One that no response has is asked twice.
func (v *visit) changeStatus() error {
	status := v.field("status")
	if asked, err := v.askStatus(status, v.responsePath()); asked || err != nil {
		return err
	}
	_, err := v.svc.Responses.Update(v.ctx(), v.responseKey(), formsvc.ResponsePatch{Status: &status})
	if transition, ok := errors.AsType[*formsvc.TransitionError](err); ok {
		v.wrong = map[string]string{"status": "The status can't change from " + transition.From + " to " + transition.To + ". " + allowed(transition)}
		return v.showResponse(http.StatusConflict)
	}
	if v.invalid(err) {
		return v.showResponse(http.StatusUnprocessableEntity)
	}
	if err != nil {
		return err
	}
	return v.redirect(v.responsePath(), v.noted("status"))
}

// noted returns the query of the list that the visitor came from, with a note.
func (v *visit) noted(note string) url.Values {
	query := v.viewed()
	query.Set("note", note)
	return query
}

type confirmPage struct {
	Status   string
	Known    []string
	Path     string     // of the form
	Back     string     // the address to go back to
	Fields   url.Values // of the form
	Selected int
}

// askStatus asks whether a status that no response of the campaign has and no workflow knows is meant, unless that was asked.
func (v *visit) askStatus(status, back string) (asked bool, err error) {
	known, others, _, err := v.statuses("")
	if err != nil || !others || status == "" || status == formsvc.StatusSpam || slices.Contains(known, status) || v.field("new") == status {
		return false, err
	}
	p := confirmPage{Status: status, Known: known, Path: v.r.URL.EscapedPath(), Back: back + v.suffix(), Fields: url.Values{"new": {status}, "status": {status}}}
	for _, name := range []string{"view", "do", "response"} {
		p.Fields[name] = v.r.PostForm[name]
	}
	p.Selected = len(p.Fields["response"])
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
	_, err := v.once().Comments.Create(v.ctx(), v.responseKey(), in)
	if v.invalid(err) {
		return v.showResponse(http.StatusUnprocessableEntity)
	}
	if err != nil {
		return err
	}
	return v.redirect(v.responsePath(), v.noted("commented"))
}

// deleteResponse removes a response.
func (v *visit) deleteResponse() error {
	if err := v.svc.Responses.Delete(v.ctx(), v.responseKey(), nil); err != nil {
		return err
	}
	return v.redirect("/campaigns/"+string(v.campaign.ID), v.noted("gone"))
}
