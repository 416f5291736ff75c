package intake

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/formsvc/toolkit/formsvc"
)

// maxErrors is how many entries a problem document lists under errors.
const maxErrors = 100

// A kind is a row of the table of errors: what a visitor and a script get for them.
type kind struct {
	err    error
	status int
	code   string
	text   string // the name of the page's text, whose title ends in Title
	detail string
}

// kinds returns the table. The first row that matches an error decides.
func kinds() []kind {
	return []kind{
		{errFile, http.StatusServiceUnavailable, "file_not_stored", "busy", "The response was created, but not all files. Send the same again with the same Idempotency-Key."},
		{errMany, http.StatusTooManyRequests, "too_many_requests", "many", "Too many forms came from this address. Wait as long as Retry-After says."},
		{errSpool, http.StatusServiceUnavailable, "unavailable", "busy", "The service can't keep files now. Nothing was changed; retry."},
		{errTooMuch, http.StatusRequestEntityTooLarge, "body_too_large", "large", ""},
		{errPage, http.StatusInternalServerError, "form_too_large", "huge", "The form has too many questions and options for a page."},
		{errMedia, http.StatusUnsupportedMediaType, "unsupported_media_type", "wrong", "Send application/json, application/x-www-form-urlencoded or multipart/form-data, uncompressed."},
		{errBody, http.StatusBadRequest, "invalid_body", "wrong", `The body can't be read. JSON must be {"user": {…}, "responses": {"name": {"value": ["…"]}}}, without other fields.`},
		{errOrigin, http.StatusForbidden, "origin_not_allowed", "wrong", "The form's allowed origins don't have the origin of this page."},
		{errMethod, http.StatusMethodNotAllowed, "method_not_allowed", "wrong", "Forms take GET and POST."},
		{formsvc.ErrInvalid, http.StatusUnprocessableEntity, "validation_failed", "wrong", "The body is well-formed, but breaks the rules named in errors."},
		{formsvc.ErrCampaignClosed, http.StatusConflict, "campaign_closed", "closed", "The campaign takes no new responses now."},
		{formsvc.ErrLimit, http.StatusConflict, "limit_reached", "full", "The owner's account is at a limit. Nothing was stored."},
		{formsvc.ErrNotFound, http.StatusNotFound, "not_found", "gone", "There is no form at this address."},
		{errBusy, http.StatusServiceUnavailable, "unavailable", "busy", "The service is overloaded. Nothing was changed; retry."},
		{formsvc.ErrUnknownOutcome, http.StatusServiceUnavailable, "outcome_unknown", "busy", "The connection to the store broke. Retry with the same Idempotency-Key."},
		{formsvc.ErrStoreClosed, http.StatusServiceUnavailable, "unavailable", "busy", "The service is shutting down; retry."},
		{formsvc.ErrUnavailable, http.StatusServiceUnavailable, "unavailable", "busy", "The service is unavailable; retry."},
		{formsvc.ErrNoSpace, http.StatusServiceUnavailable, "unavailable", "busy", "The service is out of storage."},
		{context.DeadlineExceeded, http.StatusServiceUnavailable, "timeout", "busy", "The service took too long; retry with the same Idempotency-Key."},
	}
}

// kindOf returns the row for an error.
func kindOf(err error) kind {
	for _, k := range kinds() {
		if errors.Is(err, k.err) {
			return k
		}
	}
	return kind{nil, http.StatusInternalServerError, "internal", "failed", "Internal error. Include the requestId when you report it."}
}

// fail replies with an error.
func (v *visit) fail(err error) {
	k := kindOf(err)
	header := v.w.Header()
	switch {
	case errors.Is(err, context.Canceled) && v.r.Context().Err() != nil:
		return // the visitor has left
	case errors.Is(err, os.ErrDeadlineExceeded) && v.sent != nil && v.sent.partial:
		k = kind{errSlow, http.StatusRequestTimeout, "request_timeout", "busy", "The body came too slowly. Nothing was changed; retry."}
		header.Set("Connection", "close")
	case k.status == http.StatusServiceUnavailable:
		header.Set("Retry-After", "5")
	}
	if header.Get("Access-Control-Allow-Origin") == "" && (v.campaign == nil || k.status == http.StatusTooManyRequests) {
		header.Set("Access-Control-Allow-Origin", "*") // whose form it is isn't known, and scripts must see the status
	}
	if k.err == nil || k.status == http.StatusServiceUnavailable && k.err != errBusy { //nolint:errorlint // of our own table
		v.h.opts.Logger.LogAttrs(v.r.Context(), slog.LevelError, "form failed",
			slog.String("requestId", v.id), slog.Int("status", k.status), slog.String("error", err.Error()))
	}
	over, _ := errors.AsType[*limitError](err)
	if over != nil {
		k.detail = v.h.texts["en"].format(over.text, over.most)
	} else if limit, ok := errors.AsType[*formsvc.LimitError](err); ok && limit.Kind == "responses" {
		k.code = "response_limit"
	}
	if v.script {
		v.problem(k, err)
		return
	}
	p := &page{Title: v.t[k.text+"Title"], About: v.t[k.text]}
	if over != nil {
		p.About = v.t.format(over.text, over.most) + " " + v.t["smaller"]
	} else if k.text == "closed" {
		p.Title, p.About = v.when()
	}
	if v.sent != nil && len(v.sent.form) > 0 && (over != nil || k.status == http.StatusUnprocessableEntity || k.text == "full" || !v.sent.partial && k.status >= http.StatusInternalServerError) {
		if v.again(k.status, func() *page { return v.corrected(k, err, over) }) == nil {
			return
		}
	}
	if err := v.show(k.status, p); err != nil {
		v.h.opts.Logger.ErrorContext(v.r.Context(), "showing a form failed", slog.String("requestId", v.id), slog.Any("error", err))
		http.Error(v.w, http.StatusText(k.status), k.status)
	}
}

// corrected returns the page with the questions, what was typed, and the errors.
func (v *visit) corrected(k kind, err error, over *limitError) *page {
	token, s := v.sent.page, v.sent
	if errors.Is(err, errFile) {
		token += "." + s.resumed
	}
	p := v.formPage(s, token)
	var faults []formsvc.FieldError
	if invalid, ok := errors.AsType[*formsvc.ValidationError](err); ok {
		faults = invalid.Fields
	}
	switch {
	case over != nil:
		p.Problems = []link{{Text: v.t.format(over.text, over.most)}}
	case errors.Is(err, errFile):
		p.Problems = []link{{Text: v.t["fileAgain"]}}
		faults = []formsvc.FieldError{{Pointer: pointerTo(v.lost), Code: "file_not_stored"}}
	case k.text == "full":
		p.Problems = []link{{Text: v.t["full"]}}
	case k.status >= http.StatusInternalServerError:
		p.Problems = []link{{Text: v.t["sendAgain"]}}
	}
	if s.partial {
		p.Problems = append(p.Problems, link{Text: v.t["partial"]})
	}
	v.tell(p, faults)
	left := typedSize / 4
	for _, name := range s.names { // what the form doesn't ask any more is shown, but not sent again
		if left > inputSize && len(s.modules) > 0 && s.modules[name] == nil && !isUser(name) && !s.ours(name) {
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
	case c.Status != formsvc.CampaignOpen:
	case now.Before(c.OpensAt):
		return v.t["opensTitle"], v.t.format("opens", v.t.time(c.OpensAt))
	case !c.ClosesAt.IsZero():
		return v.t["closedTitle"], v.t.format("closedSince", v.t.time(c.ClosesAt))
	}
	return v.t["closedTitle"], v.t["closed"]
}

// problem sends a problem document, as the API has them.
func (v *visit) problem(k kind, err error) {
	doc := struct {
		Type      string               `json:"type"`
		Title     string               `json:"title"`
		Status    int                  `json:"status"`
		Detail    string               `json:"detail"`
		Code      string               `json:"code"`
		RequestID string               `json:"requestId"`
		Errors    []formsvc.FieldError `json:"errors,omitzero"`
	}{"about:blank", http.StatusText(k.status), k.status, k.detail, k.code, v.id, nil}
	if invalid, ok := errors.AsType[*formsvc.ValidationError](err); ok {
		doc.Errors = invalid.Fields[:min(len(invalid.Fields), maxErrors)]
	}
	v.w.Header().Set("Content-Type", "application/problem+json")
	v.begin(k.status, 0)
	_ = json.MarshalWrite(v.w, doc) // on an error the client has disconnected
}
