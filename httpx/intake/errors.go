package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// The errors of forms that the API doesn't have. The others are in the table of package wire.
var (
	errFile = wire.Refuse(http.StatusServiceUnavailable, "file_not_stored",
		"The response was created, but not all files. Send the same again with the same Idempotency-Key.")
	errMany  = wire.Refuse(http.StatusTooManyRequests, "too_many_requests", "Too many forms came from this address. Wait as long as Retry-After says.")
	errSpool = wire.Refuse(http.StatusServiceUnavailable, "unavailable", "The service can't keep files now. Nothing was changed; retry.")
	errBusy  = &wire.Problem{
		Status: http.StatusServiceUnavailable, Code: "unavailable", Detail: "The service is overloaded. Nothing was changed; retry.",
		Told: true, // there may be many
	}
	errTooMuch = wire.Refuse(http.StatusRequestEntityTooLarge, "body_too_large", "") // see limitError
	errPage    = &wire.Problem{
		Status: http.StatusInternalServerError, Code: "form_too_large", Detail: "The form has too many questions and options for a page.", Told: true,
	}
	errMedia = wire.Refuse(http.StatusUnsupportedMediaType, "unsupported_media_type",
		"Send application/json, application/x-www-form-urlencoded or multipart/form-data, uncompressed.")
	errBody   = wire.BadRequest("invalid_body", "The form can't be read.")
	errOrigin = wire.Refuse(http.StatusForbidden, "origin_not_allowed", "This page's origin isn't allowed.")
	errMethod = wire.Refuse(http.StatusMethodNotAllowed, "method_not_allowed", "Forms take GET and POST.")
)

// A limitError says which limit a form is beyond. It is errTooMuch.
type limitError struct {
	text string // the name of the page's text
	most any    // its argument
}

// Error implements error.
func (e *limitError) Error() string { return fmt.Sprintf("%s: more than %v", e.text, e.most) }

// Unwrap returns errTooMuch.
func (e *limitError) Unwrap() error { return errTooMuch }

// textOf returns the name of the page's text for a problem, whose title ends in Title.
func textOf(p *wire.Problem) string {
	switch p.Status {
	case http.StatusNotFound:
		return "gone"
	case http.StatusRequestEntityTooLarge:
		return "large"
	case http.StatusTooManyRequests:
		if overQuota(p) {
			return "busy"
		}
		return "many"
	case http.StatusConflict, http.StatusRequestTimeout, http.StatusServiceUnavailable, http.StatusInsufficientStorage:
		return cmp.Or(map[string]string{"campaign_closed": "closed", "campaign_full": "taken", "choice_full": "taken", "already_answered": "taken", "response_limit": "full", "limit_reached": "full"}[p.Code], "busy")
	case http.StatusInternalServerError:
		return cmp.Or(map[string]string{"form_too_large": "huge"}[p.Code], "failed")
	}
	return "wrong"
}

// overQuota reports whether a store refused a response for the quota of its account, which isn't the visitor's.
func overQuota(p *wire.Problem) bool { return p.Code == "quota_exceeded" }

// fail replies with an error.
func (v *visit) fail(err error) {
	if errors.Is(err, context.Canceled) && v.r.Context().Err() != nil {
		return // the visitor has left
	}
	p, header := *wire.ProblemOf(v.r.Context(), err), v.w.Header()
	if p.HangUp {
		header.Set("Connection", "close")
	}
	if p.Status == http.StatusServiceUnavailable {
		header.Set("Retry-After", "5")
	} else if p.RetryAfter != "" {
		header.Set("Retry-After", p.RetryAfter)
	}
	if header.Get("Access-Control-Allow-Origin") == "" && (v.campaign == nil || p.Status == http.StatusTooManyRequests) {
		header.Set("Access-Control-Allow-Origin", "*") // whose form it is isn't known, and scripts must see the status
	}
	if p.Status >= http.StatusInternalServerError && !p.Told {
		v.h.opts.Logger.LogAttrs(v.r.Context(), slog.LevelError, "form failed",
			slog.String("requestId", v.id), slog.Int("status", p.Status), slog.String("error", err.Error()))
	}
	over, _ := errors.AsType[*limitError](err)
	if over != nil {
		p.Detail = v.h.texts["en"].format(over.text, over.most)
	} else if errors.Is(err, formsvc.ErrLimit) && p.Status == http.StatusConflict {
		p.Detail = "The owner's account is at a limit. Nothing was stored." // its numbers aren't the visitor's business
	}
	if v.script {
		header.Set("Content-Type", "application/problem+json")
		v.begin(p.Status, 0)
		_, _ = v.w.Write(p.Append(nil, v.id)) // on an error the client has disconnected
		return
	}
	text := textOf(&p)
	shown := &page{Title: v.t[text+"Title"], About: v.t[text]}
	if over != nil {
		shown.About = v.t.format(over.text, over.most) + " " + v.t["smaller"]
	} else if text == "closed" {
		if shown.Title, shown.About = v.when(); v.r.Method == http.MethodPost {
			shown.About += "\n\n" + v.t["full"]
		}
	}
	refusal, refused := errors.AsType[*formsvc.Refusal](err)
	if refused {
		shown.About = cmp.Or(v.t["error_"+refusal.Code], refusal.Detail)
	}
	told := slices.Contains([]string{"closed", "full", "gone", "taken"}, text)
	if v.sent != nil && len(v.sent.form) > 0 && (refused || over != nil || told || p.Status == http.StatusUnprocessableEntity || !v.sent.partial && (overQuota(&p) || p.Status >= http.StatusInternalServerError)) {
		if p.Status < http.StatusInternalServerError {
			_ = v.count() // without numbers, the page shows the error alone
		}
		if v.again(p.Status, func() *page { return v.corrected(&p, err) }) == nil {
			return
		}
	}
	if err := v.show(p.Status, shown); err != nil {
		v.h.opts.Logger.ErrorContext(v.r.Context(), "showing a form failed", slog.String("requestId", v.id), slog.Any("error", err))
		http.Error(v.w, http.StatusText(p.Status), p.Status)
	}
}

// corrected returns the page with the questions, what was typed, and the errors.
func (v *visit) corrected(why *wire.Problem, err error) *page {
	token, s := v.sent.page, v.sent
	if errors.Is(err, errFile) {
		token += "." + s.resumed
	}
	p := v.formPage(s, token)
	faults := why.Fields
	over, tooMuch := errors.AsType[*limitError](err)
	refusal, refused := errors.AsType[*formsvc.Refusal](err)
	switch {
	case refused:
		p.Problems = []link{{Text: cmp.Or(v.t["error_"+refusal.Code], refusal.Detail)}}
	case tooMuch:
		p.Problems = []link{{Text: v.t.format(over.text, over.most)}}
	case errors.Is(err, errFile):
		p.Problems = []link{{Text: v.t["fileAgain"]}}
		faults = []formsvc.FieldError{{Pointer: pointerTo(v.lost), Code: "file_not_stored"}}
	case why.Code == "campaign_full", v.full():
		p.Problems = []link{{Text: v.t["notTaken"]}}
	case textOf(why) == "closed":
		title, about := v.when()
		p.Problems = []link{{Text: title}, {Text: about}, {Text: v.t["full"]}}
	case textOf(why) == "gone", v.campaign.ID == "":
		text := textOf(why)
		p.Gone, p.Title, p.Problems = true, cmp.Or(p.Title, v.t[text+"Title"]), []link{{Text: v.t[text]}}
		if text == "gone" {
			p.Problems = append(p.Problems, link{Text: v.t["full"]})
		}
		p.Fields = slices.DeleteFunc(p.Fields, func(f field) bool { return f.Options == nil && strings.Join(f.Values, "") == "" })
	case textOf(why) == "full":
		p.Problems = []link{{Text: v.t["full"]}}
	case why.Status >= http.StatusInternalServerError, overQuota(why):
		p.Problems = []link{{Text: v.t["sendAgain"]}}
	}
	if own := v.campaign.Form.Texts.Full; own != "" && (why.Code == "campaign_full" || textOf(why) == "full" || v.full()) {
		p.Problems = append(p.Problems, link{Text: own})
	}
	if s.partial {
		p.Problems = append(p.Problems, link{Text: v.t["partial"]})
	}
	v.tell(p, faults)
	left := typedSize / 4
	for _, name := range s.names { // what the form doesn't ask any more is shown, but not sent again
		m := s.modules[name]
		if left > inputSize && len(s.modules) > 0 && (m == nil || m.Type == formsvc.SectionModule) && !isUser(name) && !s.ours(name) {
			f := field{T: v.t, ID: "q" + strconv.Itoa(len(p.Fields)+1), Label: name, Kind: "longtext", Error: v.t["error_unknown_module"]}
			f.fill(s.form[name], &left)
			f.describe()
			p.Fields = append(p.Fields, f)
		}
	}
	return p
}

// when returns the title and the text of the page of a campaign that is closed or not open yet.
func (v *visit) when() (title, about string) {
	c, now := v.campaign, v.h.svc.Now()
	switch {
	case c.Status == formsvc.CampaignOpen && now.Before(c.OpensAt):
		return v.t["opensTitle"], v.t.format("opens", v.time(c.OpensAt))
	case c.Status == formsvc.CampaignOpen && !c.ClosesAt.IsZero() && c.Form.Texts.Closed == "":
		return v.t["closedTitle"], v.t.format("closedSince", v.time(c.ClosesAt))
	}
	return v.t["closedTitle"], v.t["closed"]
}
