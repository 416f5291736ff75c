// Package wire has the JSON that the API takes and returns, as far as the public forms and the console need it too: bodies, replies, and
// errors.
package wire

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// MaxErrors is the limit of entries that a problem document lists under errors.
const MaxErrors = 100

// StatusClientGone is the status that proxies log when the client left before the reply. No client sees it.
const StatusClientGone = 499

// A Problem is an error in the form that the client gets.
type Problem struct { //nolint:errname // as RFC 9457 has it
	Status int
	Code   string
	Title  string // of the console's page; "" if visitors can do nothing about the error
	Detail string

	Fields     []formsvc.FieldError // under errors
	Query      bool                 // whether the pointers in Fields are names of parameters
	Permission formsvc.Permission   // the missing one
	Allowed    []string             // the statuses that may follow; nil: not shown
	Allow      string               // the header Allow
	RetryAfter string               // the header Retry-After with 429, in seconds
	HangUp     bool                 // whether an HTTP/1 connection must be closed
	Passing    bool                 // whether the same request may succeed soon
	Forget     bool                 // whether a retry with the same Idempotency-Key is a new call
	Told       bool                 // whether it is logged already
	Overload   bool                 // whether the request was refused for overload, so that it doesn't count
	Cause      error                // not shown to clients
}

// Refuse returns a problem.
func Refuse(status int, code, detail string) *Problem {
	return &Problem{Status: status, Code: code, Detail: detail}
}

// BadRequest returns a problem with the status 400.
func BadRequest(code, detail string) *Problem { return Refuse(http.StatusBadRequest, code, detail) }

// Error implements error.
func (p *Problem) Error() string {
	if p.Cause != nil {
		return p.Code + ": " + p.Cause.Error()
	}
	return p.Code + ": " + p.Detail
}

// A kind is a row of the table that maps errors to problems.
type kind struct {
	err    error
	status int
	code   string
	title  string // for the console, see [Problem]
	detail string
}

// kinds is the table of all errors. The first row that matches an error decides.
//
//nolint:gochecknoglobals // immutable
var kinds = [...]kind{
	{formsvc.ErrUnknownOutcome, http.StatusServiceUnavailable, "outcome_unknown", "This may or may not have been saved",
		"The connection to the store broke during the write. Check whether the change happened before you retry."},
	{formsvc.ErrStoreClosed, http.StatusServiceUnavailable, "unavailable", "The service is unavailable",
		"The service is shutting down. Nothing was changed; retry."},
	{formsvc.ErrMoved, http.StatusServiceUnavailable, "unavailable", "The service is unavailable",
		"The data is being moved to another database. Nothing was changed; retry later."},
	{formsvc.ErrUnavailable, http.StatusServiceUnavailable, "unavailable", "The service is unavailable",
		"The service is unavailable. Nothing was changed; retry."},
	{formsvc.ErrOtherBlobs, http.StatusServiceUnavailable, "unavailable", "",
		"The service accepts no files: its file storage belongs to another database. See its log. Nothing was changed."},
	{formsvc.ErrNoSpace, http.StatusInsufficientStorage, "insufficient_storage", "The server's disk is full",
		"The service is out of storage. Nothing was changed."},
	{formsvc.ErrCorrupt, http.StatusBadGateway, "blob_corrupt", "",
		"The stored file is missing or damaged."},
	{errors.ErrUnsupported, http.StatusNotImplemented, "not_supported", "",
		"The service doesn't store files."}, // everything else works
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "timeout", "The service is unavailable",
		"The service took too long. Check whether the change happened before you retry."},
	{formsvc.ErrUnauthenticated, http.StatusUnauthorized, "unauthenticated", "",
		"Send a valid API key in the header Authorization: Bearer <API_KEY>."},
	{formsvc.ErrNotFound, http.StatusNotFound, "not_found", "Page not found",
		"Nothing was found at this address."},
	{formsvc.ErrStale, http.StatusPreconditionFailed, "precondition_failed", "Someone else changed this",
		"The record changed since you read it. Read it again and repeat your change."},
	{formsvc.ErrCampaignClosed, http.StatusConflict, "campaign_closed", "",
		"The campaign takes no new responses now."},
	{formsvc.ErrCampaignFull, http.StatusConflict, "campaign_full", "All places are taken",
		"The campaign has as many responses as it takes."},
	{formsvc.ErrChoiceFull, http.StatusConflict, "choice_full", "A choice has no places left",
		"No place is left for a choice. See errors for which, and choose another one."},
	{formsvc.ErrAlreadyAnswered, http.StatusConflict, "already_answered", "This address has answered already",
		"The campaign takes one response of an e-mail address, and has one."},
	{formsvc.ErrCampaignNotEmpty, http.StatusConflict, "campaign_not_empty", "This campaign has responses",
		"The campaign has responses. Delete them first."},
	{formsvc.ErrLastAdmin, http.StatusConflict, "last_admin", "An admin is needed",
		"The account would be left without an admin. Make somebody else an admin first, who has signed in."},
	{formsvc.ErrTransition, http.StatusConflict, "transition_not_allowed", "",
		"The status can't be changed to that one."},
	{formsvc.ErrInFlight, http.StatusConflict, "idempotency_in_flight", "In progress",
		"A request with this Idempotency-Key is in progress. Wait for its reply, then retry."},
	{formsvc.ErrMismatch, http.StatusUnprocessableEntity, "idempotency_mismatch", "Already done",
		"This Idempotency-Key was used for another request. Send a new one with every new request."},
	{formsvc.ErrErased, http.StatusGone, "erased", "",
		"The result of this call was erased. To create something new, send another Idempotency-Key."},
	{formsvc.ErrResponseDeleted, http.StatusGone, "response_deleted", "This delivery can't be sent again",
		"The response of this delivery was deleted, so it can't be sent again."},
	{formsvc.ErrConflict, http.StatusConflict, "conflict", "",
		"Another record has that value, and it must be unique."},
	{formsvc.ErrLimit, http.StatusConflict, "limit_reached", "",
		"The account has reached its limit for these records."}, // the kinds of limits have their own codes
	{formsvc.ErrQuota, http.StatusTooManyRequests, "quota_exceeded", "Too many requests",
		"The account has used up its quota. Nothing was changed; retry later."}, // of a store; the service's says more
	{formsvc.ErrDigest, http.StatusBadRequest, "digest_mismatch", "",
		"What arrived does not have the hash that Content-Digest names."},
	{formsvc.ErrInvalid, http.StatusUnprocessableEntity, "validation_failed", "A value isn't allowed",
		"The body is well-formed, but breaks the rules named in errors."},
}

// QuotaWait is the header Retry-After, in seconds, if a store's own quota is used up: when there is more isn't known.
const QuotaWait = "60"

// Sentinel returns the error of package formsvc that clients get as a problem with that status and code, or nil.
func Sentinel(status int, code string) error {
	switch {
	case strings.HasSuffix(code, "_limit"):
		return formsvc.ErrLimit
	case status == http.StatusRequestEntityTooLarge:
		return formsvc.ErrTooLarge
	case status == http.StatusServiceUnavailable && code != "outcome_unknown":
		return formsvc.ErrUnavailable
	case code == "too_large":
		return formsvc.ErrInvalid
	}
	for _, k := range kinds {
		if k.status == status && k.code == code {
			return k.err
		}
	}
	return nil
}

// ProblemOf returns the problem that the client gets for err.
func ProblemOf(ctx context.Context, err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return ClientGone(err)
	}
	if body, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return BodyTooLarge(body.Limit)
	}
	if file, ok := errors.AsType[*formsvc.FileSizeError](err); ok {
		return tooLarge("file_too_large", "A file", file.Limit)
	}
	if refusal, ok := errors.AsType[*formsvc.Refusal](err); ok {
		return refused(refusal)
	}
	p := Refuse(http.StatusInternalServerError, "internal", "Internal error. Include the requestId when you report it.")
	p.Cause = err
	i := slices.IndexFunc(kinds[:], func(k kind) bool { return errors.Is(err, k.err) })
	if i < 0 {
		return p
	}
	k := &kinds[i]
	if k.status == http.StatusTooManyRequests {
		p.RetryAfter = QuotaWait
	}
	p.Status, p.Code, p.Title, p.Detail, p.Passing = k.status, k.code, k.title, k.detail, errors.Is(k.err, formsvc.ErrInFlight)
	p.Forget = slices.Contains([]string{"campaign_full", "choice_full", "already_answered"}, k.code) // a place may become free
	if v, ok := errors.AsType[*formsvc.ValidationError](err); ok {
		p.Fields = v.Fields
		if slices.ContainsFunc(v.Fields, func(f formsvc.FieldError) bool { return f.Code == "too_large" }) {
			p.Code = "too_large"
		}
	}
	if l, ok := errors.AsType[*formsvc.LimitError](err); ok {
		p.Code = cmp.Or(map[string]string{
			"campaigns": "campaign_limit", "bytes of files": "storage_limit", "webhooks": "webhook_limit", "responses": "response_limit",
		}[l.Kind], p.Code)
		p.Title, p.Detail = "No more "+l.Kind, "T"+l.Error()[1:]+"."
	}
	if t, ok := errors.AsType[*formsvc.TransitionError](err); ok {
		p.Allowed = append([]string{}, t.Allowed...)
	}
	return p
}

// refused returns the problem for the refusal of a host.
func refused(r *formsvc.Refusal) *Problem {
	p := Refuse(r.Status, cmp.Or(r.Code, "refused"), r.Detail)
	if p.Status < 400 || p.Status > 499 {
		p.Status = http.StatusConflict
	}
	p.Title, p.Forget = "This isn't possible", !r.Lasting
	return p
}

// ClientGone returns the problem for a client that disconnected.
func ClientGone(cause error) *Problem {
	return &Problem{Status: StatusClientGone, Code: "client_gone", Detail: "The client disconnected.", Cause: cause}
}

// BodyTooLarge returns the problem for a body with more than limit bytes.
func BodyTooLarge(limit int64) *Problem { return tooLarge("body_too_large", "The body", limit) }

func tooLarge(code, what string, limit int64) *Problem {
	p := Refuse(http.StatusRequestEntityTooLarge, code, what+" must have at most "+strconv.FormatInt(limit, 10)+" bytes.")
	p.HangUp = true
	return p
}

// A Document is a problem document. Its type is always about:blank: problems are told apart by code.
type Document struct {
	Type       string             `json:"type"`
	Title      string             `json:"title"`
	Status     int                `json:"status"`
	Detail     string             `json:"detail"`
	Code       string             `json:"code"`
	RequestID  string             `json:"requestId"`
	Permission formsvc.Permission `json:"permission,omitzero"`
	Allowed    []string           `json:"allowed,omitzero"`
	Errors     any                `json:"errors,omitzero"`
}

// A parameterError is a FieldError of a query.
type parameterError struct {
	Parameter string `json:"parameter"`
	Code      string `json:"code"`
	Detail    string `json:"detail"`
}

// Append appends the problem document.
func (p *Problem) Append(b []byte, requestID string) []byte {
	d := Document{
		"about:blank", http.StatusText(p.Status), p.Status, p.Detail, p.Code, requestID, p.Permission, p.Allowed, nil,
	}
	if p.Status == StatusClientGone {
		d.Title = "Client Closed Request"
	}
	fields := p.Fields[:min(len(p.Fields), MaxErrors)]
	switch {
	case p.Query:
		list := make([]parameterError, len(fields))
		for i, f := range fields {
			list[i] = parameterError{f.Pointer, f.Code, f.Detail}
		}
		d.Errors = list
	case len(fields) > 0:
		d.Errors = fields
	}
	return AppendReply(b, d)
}
