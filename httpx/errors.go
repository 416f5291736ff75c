package httpx

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/formsvc/toolkit/formsvc"
)

// MaxErrors is the limit of entries that a problem document lists under errors.
const MaxErrors = 100

// statusClientGone is the status that proxies log when the client left before the reply. No client sees it.
const statusClientGone = 499

// retryAfter is the number of seconds in Retry-After.
const retryAfter = "1"

var errPanic = errors.New("panic")

// A problem is an error in the form that the client gets.
type problem struct {
	status int
	code   string
	detail string

	fields     []formsvc.FieldError // under errors
	query      bool                 // whether the pointers in fields are names of parameters
	permission formsvc.Permission   // the missing one
	allowed    []string             // the statuses that may follow; nil: not shown
	allow      string               // the header Allow
	retryAfter string               // the header Retry-After with 429, in seconds
	hangUp     bool                 // whether an HTTP/1 connection must be closed
	passing    bool                 // whether the same request may succeed soon
	told       bool                 // whether it is logged already
	overload   bool                 // whether the request was refused for overload, so that it doesn't count
	cause      error                // not shown to clients
}

func (p *problem) Error() string {
	if p.cause != nil {
		return p.code + ": " + p.cause.Error()
	}
	return p.code + ": " + p.detail
}

// A kind is a row of the table that maps errors to problems.
type kind struct {
	err    error
	status int
	code   string
	detail string
}

// kinds is the table of all errors. The first row that matches an error decides.
//
//nolint:gochecknoglobals // immutable
var kinds = [...]kind{
	{formsvc.ErrUnknownOutcome, http.StatusServiceUnavailable, "outcome_unknown",
		"The connection to the store broke during the write. Check whether the change happened before you retry."},
	{formsvc.ErrStoreClosed, http.StatusServiceUnavailable, "unavailable",
		"The service is shutting down. Nothing was changed; retry."},
	{formsvc.ErrMoved, http.StatusServiceUnavailable, "unavailable",
		"The data is being moved to another database. Nothing was changed; retry later."},
	{formsvc.ErrUnavailable, http.StatusServiceUnavailable, "unavailable",
		"The service is unavailable. Nothing was changed; retry."},
	{formsvc.ErrOtherBlobs, http.StatusServiceUnavailable, "unavailable",
		"The service accepts no files: its file storage belongs to another database. See its log. Nothing was changed."},
	{formsvc.ErrNoSpace, http.StatusInsufficientStorage, "insufficient_storage",
		"The service is out of storage. Nothing was changed."},
	{formsvc.ErrCorrupt, http.StatusBadGateway, "blob_corrupt",
		"The stored file is missing or damaged."},
	{errors.ErrUnsupported, http.StatusNotImplemented, "not_supported",
		"The service doesn't store files."}, // everything else works
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "timeout",
		"The service took too long. Check whether the change happened before you retry."},
	{formsvc.ErrUnauthenticated, http.StatusUnauthorized, "unauthenticated",
		"Send a valid API key in the header Authorization: Bearer <API_KEY>."},
	{formsvc.ErrNotFound, http.StatusNotFound, "not_found",
		"Nothing was found at this address."},
	{formsvc.ErrStale, http.StatusPreconditionFailed, "precondition_failed",
		"The record changed since you read it. Read it again and repeat your change."},
	{formsvc.ErrCampaignClosed, http.StatusConflict, "campaign_closed",
		"The campaign takes no new responses now."},
	{formsvc.ErrCampaignNotEmpty, http.StatusConflict, "campaign_not_empty",
		"The campaign has responses. Delete them first."},
	{formsvc.ErrTransition, http.StatusConflict, "transition_not_allowed",
		"The status can't be changed to that one."},
	{formsvc.ErrInFlight, http.StatusConflict, "idempotency_in_flight",
		"A request with this Idempotency-Key is in progress. Wait for its reply, then retry."},
	{formsvc.ErrMismatch, http.StatusUnprocessableEntity, "idempotency_mismatch",
		"This Idempotency-Key was used for another request. Send a new one with every new request."},
	{formsvc.ErrErased, http.StatusGone, "erased",
		"The result of this call was erased. To create something new, send another Idempotency-Key."},
	{formsvc.ErrResponseDeleted, http.StatusGone, "response_deleted",
		"The response of this delivery was deleted, so it can't be sent again."},
	{formsvc.ErrConflict, http.StatusConflict, "conflict",
		"Another record has that value, and it must be unique."},
	{formsvc.ErrLimit, http.StatusConflict, "limit_reached",
		"The account has as many of these records as it may."}, // the kinds of limits have their own codes
	{formsvc.ErrDigest, http.StatusBadRequest, "digest_mismatch",
		"What arrived does not have the hash that Content-Digest names."},
	{formsvc.ErrInvalid, http.StatusUnprocessableEntity, "validation_failed",
		"The body is well-formed, but breaks the rules named in errors."},
}

// problemOf returns the problem that the client gets for err.
func problemOf(ctx context.Context, err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return &problem{status: statusClientGone, code: "client_gone", detail: "The client disconnected.", cause: err}
	}
	if body, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return bodyTooLarge(body.Limit)
	}
	if file, ok := errors.AsType[*formsvc.FileSizeError](err); ok {
		return tooLarge("file_too_large", "A file", file.Limit)
	}
	for i := range kinds {
		k := &kinds[i]
		if !errors.Is(err, k.err) {
			continue
		}
		p := &problem{status: k.status, code: k.code, detail: k.detail, passing: errors.Is(k.err, formsvc.ErrInFlight), cause: err}
		if v, ok := errors.AsType[*formsvc.ValidationError](err); ok {
			p.fields = v.Fields
			if slices.ContainsFunc(v.Fields, func(f formsvc.FieldError) bool { return f.Code == "too_large" }) {
				p.code = "too_large"
			}
		}
		if l, ok := errors.AsType[*formsvc.LimitError](err); ok {
			p.code = cmp.Or(map[string]string{
				"campaigns": "campaign_limit", "bytes of files": "storage_limit", "webhooks": "webhook_limit", "responses": "response_limit",
			}[l.Kind], p.code)
			p.detail = "T" + l.Error()[1:] + "."
		}
		if t, ok := errors.AsType[*formsvc.TransitionError](err); ok {
			p.allowed = append([]string{}, t.Allowed...)
		}
		return p
	}
	return &problem{
		status: http.StatusInternalServerError, code: "internal", cause: err,
		detail: "Internal error. Include the requestId when you report it.",
	}
}

func bodyTooLarge(limit int64) *problem { return tooLarge("body_too_large", "The body", limit) }

func tooLarge(code, what string, limit int64) *problem {
	return &problem{
		status: http.StatusRequestEntityTooLarge, code: code, hangUp: true,
		detail: what + " must have at most " + strconv.FormatInt(limit, 10) + " bytes.",
	}
}

// sendProblem sends the problem document.
func (c *call) sendProblem(p *problem) {
	header := c.w.Header()
	delete(header, "Etag") // of a reply that found no memory
	delete(header, "Location")
	switch p.status {
	case http.StatusUnauthorized:
		header["Www-Authenticate"] = []string{"Bearer"}
	case http.StatusMethodNotAllowed:
		header["Allow"] = []string{p.allow}
	case http.StatusServiceUnavailable:
		header["Retry-After"] = []string{retryAfter}
	case http.StatusTooManyRequests:
		header["Retry-After"] = []string{p.retryAfter}
	}
	if p.passing {
		header["Retry-After"] = []string{retryAfter}
	}
	if p.hangUp && c.r.ProtoMajor == 1 { // HTTP/2 resets the stream; closing would end the client's other requests, too
		header["Connection"] = []string{"close"}
	}
	c.out = p.append(c.out[:0], c.requestID)
	c.start(p.status, typeProblem, noStore, len(c.out))
	c.write()
}

// A document is a problem document. Its type is always about:blank: problems are told apart by code.
type document struct {
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

// append appends the problem document.
func (p *problem) append(b []byte, requestID string) []byte {
	d := document{
		"about:blank", http.StatusText(p.status), p.status, p.detail, p.code, requestID, p.permission, p.allowed, nil,
	}
	if p.status == statusClientGone {
		d.Title = "Client Closed Request"
	}
	fields := p.fields[:min(len(p.fields), MaxErrors)]
	switch {
	case p.query:
		list := make([]parameterError, len(fields))
		for i, f := range fields {
			list[i] = parameterError{f.Pointer, f.Code, f.Detail}
		}
		d.Errors = list
	case len(fields) > 0:
		d.Errors = fields
	}
	return appendReply(b, d)
}
