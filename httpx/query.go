package httpx

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// Limits of a query, in bytes or values; of a search, in characters.
const (
	maxParameter       = 256
	maxSearch          = 200
	maxCursor          = 512
	maxStatuses        = 20
	maxChosen          = 100 // columns
	maxParameterNamed  = 64  // a longer name isn't repeated in the error
	maxOffset          = 1<<31 - 1
	unescapedPlus      = "must be an RFC 3339 timestamp; write the + of its time zone as %2B, since + means a space here"
	unknownParameter   = "is not a parameter of this address"
	repeatedParameter  = "must be there once only"
	undecodedParameter = "must be escaped as %XX, in UTF-8, and separated by &"
)

// A parameter is a set of query parameters.
type parameter uint16

const (
	paramLimit parameter = 1 << iota
	paramOffset
	paramOrder
	paramCursor
	paramStatus
	paramEmail
	paramReference
	paramCreatedAfter
	paramCreatedBefore
	paramUpdatedAfter
	paramState
	paramEvent
	paramModule
	paramSearch
	paramCampaign
	paramColumn

	pageParams   = paramLimit | paramOffset | paramOrder | paramCursor
	filterParams = paramStatus | paramEmail | paramReference |
		paramCreatedAfter | paramCreatedBefore | paramUpdatedAfter
	repeatable = paramStatus | paramEvent | paramColumn
)

// A rule says how to read a parameter.
type rule struct {
	parameter parameter
	max       int // bytes
	set       func(q *listQuery, f *faults, name, value string)
}

// rules has the rule of every parameter, by name.
//
//nolint:gochecknoglobals // immutable
var rules = map[string]rule{
	"limit":         {paramLimit, maxParameter, (*listQuery).setLimit},
	"offset":        {paramOffset, maxParameter, (*listQuery).setOffset},
	"order":         {paramOrder, maxParameter, (*listQuery).setOrder},
	"cursor":        {paramCursor, maxCursor, func(q *listQuery, _ *faults, _, value string) { q.cursor = value }},
	"status":        {paramStatus, maxParameter, (*listQuery).addStatus},
	"email":         {paramEmail, maxParameter, func(q *listQuery, _ *faults, _, value string) { q.filter.Email = value }},
	"reference":     {paramReference, maxParameter, func(q *listQuery, _ *faults, _, value string) { q.filter.Reference = value }},
	"createdAfter":  {paramCreatedAfter, maxParameter, setTime(func(q *listQuery) *time.Time { return &q.filter.CreatedAfter }, false)},
	"createdBefore": {paramCreatedBefore, maxParameter, setTime(func(q *listQuery) *time.Time { return &q.filter.CreatedBefore }, true)},
	"updatedAfter":  {paramUpdatedAfter, maxParameter, setTime(func(q *listQuery) *time.Time { return &q.filter.UpdatedAfter }, false)},
	"state":         {paramState, maxParameter, (*listQuery).setState},
	"event":         {paramEvent, maxParameter, (*listQuery).addEvent},
	"module":        {paramModule, maxModulePart, func(q *listQuery, _ *faults, _, value string) { q.module = value }},
	"search":        {paramSearch, maxSearch * utf8.UTFMax, (*listQuery).setSearch},
	"column":        {paramColumn, maxModulePart + len(answerPrefix), (*listQuery).addColumn},
	"campaignUuid":  {paramCampaign, maxParameter, (*listQuery).setCampaign},
}

// A listQuery is the parsed query of a list, or of another request.
type listQuery struct {
	page     formsvc.PageQuery // After is not set
	order    string            // "" is the list's default
	filter   formsvc.ResponseFilter
	state    formsvc.DeliveryState
	events   []formsvc.EventType
	campaign formsvc.ID
	search   string
	columns  []string // of a table; none: all
	cursor   string
	module   string
}

// maxPage ends a page early, with the record that brings its bytes to this: 1000 of the largest records would take gigabytes.
const maxPage = 4 << 20

// faults collects the errors of an input.
type faults []formsvc.FieldError

func (f *faults) add(pointer, code, detail string) {
	if len(*f) < MaxErrors {
		*f = append(*f, formsvc.FieldError{Pointer: pointer, Code: code, Detail: detail})
	}
}

// parseQuery reads a query with the allowed parameters, and reports all its errors. An empty value means absent, since
// forms and tools send all their fields.
func parseQuery(raw string, allowed parameter) (listQuery, error) {
	q := listQuery{page: formsvc.PageQuery{Limit: formsvc.DefaultLimit, MaxBytes: maxPage}}
	var f faults
	var seen parameter
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		if pair == "" {
			continue
		}
		escapedName, escapedValue, _ := strings.Cut(pair, "=")
		name, ok := unescape(escapedName)
		if !ok {
			f.add("", "invalid_encoding", undecodedParameter)
			continue
		}
		r := rules[name]
		switch {
		case r.parameter&allowed == 0:
			if len(name) > maxParameterNamed || strings.IndexByte(name, 0) >= 0 {
				name = ""
			}
			f.add(name, "unknown_parameter", unknownParameter)
		case escapedValue == "": // means absent
		case seen&r.parameter&^repeatable != 0:
			f.add(name, "repeated_parameter", repeatedParameter)
		default:
			seen |= r.parameter
			q.take(&f, &r, name, escapedValue)
		}
	}
	if seen&paramCursor != 0 && seen&paramOffset != 0 {
		f.add("cursor", "not_applicable", "can't be combined with offset")
	}
	if seen&paramCursor != 0 && allowed&paramEvent != 0 && q.order == "desc" {
		f.add("cursor", "not_applicable", "can't be combined with order=desc")
	}
	if len(f) > 0 {
		return q, invalidParameter(f)
	}
	slices.Sort(q.filter.Status) // so that equivalent queries are equal
	q.filter.Status = slices.Compact(q.filter.Status)
	return q, nil
}

// invalidParameter returns the problem for a query; the pointers in list are names of parameters.
func invalidParameter(list []formsvc.FieldError) *problem {
	for i := range list {
		list[i].Pointer = "?" + list[i].Pointer
	}
	return &problem{
		status: http.StatusBadRequest, code: "invalid_parameter", fields: list,
		detail: "The query has invalid parameters; errors lists them.",
	}
}

// unescape decodes a name or a value. It refuses a bare semicolon, which some clients mean as a separator and others as
// text.
func unescape(s string) (string, bool) {
	if strings.IndexByte(s, ';') >= 0 {
		return "", false
	}
	s, err := url.QueryUnescape(s)
	return s, err == nil && utf8.ValidString(s)
}

// take sets one parameter.
func (q *listQuery) take(f *faults, r *rule, name, escaped string) {
	value, ok := unescape(escaped)
	switch {
	case !ok:
		f.add(name, "invalid_encoding", undecodedParameter)
	case len(value) > r.max:
		f.add(name, "too_long", "is too long")
	case strings.IndexByte(value, 0) >= 0:
		f.add(name, "nul_not_allowed", "must not contain the NUL character")
	default:
		r.set(q, f, name, value)
	}
}

func (q *listQuery) setLimit(f *faults, name, value string) {
	limit, ok := parseCount(value)
	if !ok || limit < 1 {
		f.add(name, "invalid_value", "must be an integer from 1 on; values above 1000 are clamped")
	}
	q.page.Limit = min(limit, formsvc.MaxLimit)
}

func (q *listQuery) setOffset(f *faults, name, value string) {
	offset, ok := parseCount(value)
	if !ok || offset > maxOffset {
		f.add(name, "invalid_value", "must be an integer from 0 to 2147483647")
	}
	q.page.Offset = offset
}

func (q *listQuery) setOrder(f *faults, name, value string) {
	if value != "asc" && value != "desc" {
		f.add(name, "invalid_value", "must be asc or desc")
	}
	q.order, q.page.Ascending = value, value == "asc"
}

func (q *listQuery) addStatus(f *faults, name, value string) {
	if len(q.filter.Status) == maxStatuses {
		f.add(name, "too_many", "must be there at most 20 times")
		return
	}
	q.filter.Status = append(q.filter.Status, value)
}

func (q *listQuery) addColumn(f *faults, name, value string) {
	switch {
	case slices.Contains(q.columns, value):
		f.add(name, "repeated_parameter", "must name each column once")
	case len(q.columns) == maxChosen:
		f.add(name, "too_many", "must be there at most 100 times")
	}
	q.columns = append(q.columns, value)
}

func (q *listQuery) setSearch(f *faults, name, value string) {
	if utf8.RuneCountInString(value) > maxSearch {
		f.add(name, "too_long", "is too long")
	}
	q.search = value
}

func (q *listQuery) setCampaign(f *faults, name, value string) {
	id, ok := formsvc.ParseID(value)
	if !ok {
		f.add(name, "invalid_uuid", "must be a UUID")
	}
	q.campaign = id
}

func (q *listQuery) setState(f *faults, name, value string) {
	switch q.state = formsvc.DeliveryState(value); q.state {
	case formsvc.DeliveryPending, formsvc.DeliveryDelivered, formsvc.DeliveryFailed:
	default:
		f.add(name, "invalid_value", "must be pending, delivered or failed")
	}
}

func (q *listQuery) addEvent(f *faults, name, value string) {
	event := formsvc.EventType(value)
	switch {
	case !slices.Contains(webhook.KnownEventTypes(), event):
		f.add(name, "unknown_event", fmt.Sprintf("must be one of %v", webhook.KnownEventTypes()))
	case !slices.Contains(q.events, event):
		q.events = append(q.events, event)
	}
}

// setTime sets a bound in time. Records have whole milliseconds, so it rounds to a bound that lets the same records
// through: up for the end of a range.
func setTime(bound func(*listQuery) *time.Time, up bool) func(*listQuery, *faults, string, string) {
	return func(q *listQuery, f *faults, name, value string) {
		t, ok := parseTime(value)
		if !ok {
			detail := badTime
			if strings.IndexByte(value, ' ') >= 0 {
				detail = unescapedPlus
			}
			f.add(name, "invalid_timestamp", detail)
			return
		}
		floor := t.Truncate(time.Millisecond)
		if up && floor.Before(t) {
			floor = floor.Add(time.Millisecond)
		}
		*bound(q) = floor
	}
}

// parseCount reads a number of digits only. A number that is too large for any use is above maxOffset.
func parseCount(s string) (n int, ok bool) {
	count, err := strconv.ParseUint(s, 10, 32)
	return int(count), err == nil || errors.Is(err, strconv.ErrRange)
}
