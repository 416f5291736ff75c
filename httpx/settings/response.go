package settings

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// Bounds of what a page shows of a response: what is more is in the export.
const (
	shownAnswers = 200
	shownValue   = 500 // characters of a value
	shownBytes   = 48 << 10
	shownHistory = 100
)

type responsePage struct {
	Campaign   formsvc.Campaign
	Response   formsvc.Response
	Answers    []shownAnswer
	Cut        bool // whether there are more answers, or longer ones
	Files      []formsvc.File
	Comments   []formsvc.Comment
	Signatures []formsvc.Signature
	History    []happening
	Statuses   []string // that may follow
	AnyStatus  bool     // whether others may follow, too
}

type shownAnswer struct {
	Label  string
	Name   string
	Values []string
}

// A happening is an event of a response.
type happening struct {
	formsvc.Event
	Status string
}

func (v *visit) responseKey() formsvc.ResponseKey {
	return formsvc.ResponseKey{AccountID: v.account(), CampaignID: v.id("campaign"), ID: v.id("response")}
}

// response shows everything that is known of a response.
func (v *visit) response() error { return v.showResponse(http.StatusOK) }

func (v *visit) showResponse(status int) error {
	key := v.responseKey()
	p := responsePage{}
	var err error
	if p.Response, err = v.svc.Responses.Get(v.ctx(), key); err != nil {
		return err
	}
	if p.Campaign, err = v.svc.Campaigns.Get(v.ctx(), formsvc.CampaignKey{AccountID: v.account(), ID: key.CampaignID}); err != nil {
		return err
	}
	page := formsvc.PageQuery{Limit: 100, Ascending: true}
	files, err := v.svc.Files.List(v.ctx(), formsvc.FileQuery{AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID, Page: page})
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	comments, err := v.svc.Comments.List(v.ctx(), formsvc.CommentQuery{AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID, Page: page})
	if err != nil {
		return err
	}
	signatures, err := v.svc.Signatures.List(v.ctx(), formsvc.SignatureQuery{AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID, Page: page})
	if err != nil {
		return err
	}
	p.Files, p.Comments, p.Signatures = files.Items, comments.Items, signatures.Items
	events, err := v.svc.Events.About(v.ctx(), key, shownHistory)
	if err != nil {
		return err
	}
	for _, e := range events {
		h := happening{Event: e}
		if parsed, err := webhook.ParseEvent(e.Payload); err == nil {
			h.Status = parsed.Data.Response.Status
		}
		p.History = append(p.History, h)
	}
	if err := p.readAnswers(); err != nil {
		return err
	}
	p.Statuses, p.AnyStatus = v.svc.Responses.Statuses(p.Response.Status)
	return v.show(status, "response", "Response "+p.Response.Reference, p)
}

// readAnswers chooses what is shown of the answers, in the order of the modules.
func (p *responsePage) readAnswers() error {
	labels := map[string]string{}
	for _, m := range p.Campaign.Modules {
		labels[m.Name] = m.Label
	}
	room := shownBytes
	return p.Response.Answers.Each(func(name string, values []string) error {
		if len(p.Answers) == shownAnswers || room <= 0 {
			p.Cut = true
			return nil
		}
		a := shownAnswer{Label: labels[name], Name: name}
		for _, value := range values {
			if room <= 0 {
				p.Cut = true
				break
			}
			cut := short(shownValue, value)
			p.Cut = p.Cut || cut != value
			a.Values = append(a.Values, cut)
			room -= len(cut)
		}
		room -= len(name) + len(a.Label)
		p.Answers = append(p.Answers, a)
		return nil
	})
}

func (v *visit) responsePath() string {
	return "/campaigns/" + string(v.id("campaign")) + "/responses/" + string(v.id("response"))
}

// changeStatus changes the status of a response.
func (v *visit) changeStatus() error {
	status := v.field("status")
	_, err := v.svc.Responses.Update(v.ctx(), v.responseKey(), formsvc.ResponsePatch{Status: &status})
	if transition, ok := errors.AsType[*formsvc.TransitionError](err); ok {
		v.wrong = map[string]string{"status": "A response that is " + transition.From + " can't become " + transition.To + ". " + allowed(transition)}
		return v.showResponse(http.StatusConflict)
	}
	if v.invalid(err, firstSegment) {
		return v.showResponse(http.StatusUnprocessableEntity)
	}
	if err != nil {
		return err
	}
	return v.redirect(v.responsePath(), url.Values{"note": {"status"}})
}

func allowed(e *formsvc.TransitionError) string {
	if len(e.Allowed) == 0 {
		return "It is final."
	}
	return "It can become " + strings.Join(e.Allowed, ", ") + "."
}

// comment adds a comment to a response, in the visitor's name.
func (v *visit) comment() error {
	in := formsvc.CommentInput{Body: v.r.PostForm.Get("body"), Author: short(formsvc.MaxAuthor, v.who.Name)}
	_, err := v.once().Comments.Create(v.ctx(), v.responseKey(), in)
	if v.invalid(err, firstSegment) {
		return v.showResponse(http.StatusUnprocessableEntity)
	}
	if err != nil && !errors.Is(err, formsvc.ErrRepeated) {
		return err
	}
	return v.redirect(v.responsePath(), url.Values{"note": {"commented"}})
}
