package httpx

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/wire"
	"github.com/formsvc/toolkit/webhook"
)

// Limits of a query, in bytes or values; of a search, in characters.
const (
	maxParameter       = 256
	maxSearch          = 200
	maxCursor          = 512
	maxStatuses        = 20 // and names of metadata
	maxMetadata        = 8_000
	maxAnswer          = 2_000 // of a filter
	maxChosen          = 100   // columns
	maxParameterNamed  = 64    // a longer name isn't repeated in the error
	maxOffset          = 1<<31 - 1
	unescapedPlus      = "must be an RFC 3339 timestamp; write the + of its time zone as %2B, since + means a space here"
	unknownParameter   = "is not a parameter of this address"
	repeatedParameter  = "must be there once only"
	undecodedParameter = "must be escaped as %XX, in UTF-8, and separated by &"
)

// Names of parameters, separated by spaces.
const (
	pageParams   = "limit offset order cursor"
	filterParams = "status email reference createdAfter createdBefore updatedAfter " + anyMetadata
	anyMetadata  = "metadata[name]" // with any name, as those of answers
	anyAnswer    = "answer[name]"
	answerParams = anyAnswer + " answerFrom[name] answerTo[name]"
)

// maxValue returns the limit of a parameter's value in bytes.
func maxValue(name string) int {
	switch name {
	case "cursor":
		return maxCursor
	case "module":
		return maxModulePart
	case "column":
		return maxModulePart + len(answerPrefix)
	case "search":
		return maxSearch * utf8.UTFMax
	case anyMetadata:
		return maxMetadata
	case anyAnswer:
		return maxAnswer
	}
	return maxParameter
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
	answers  map[string]formsvc.AnswerFilter // by question
	columns  []string                        // of a table; none: all
	cursor   string
	module   string
}

// maxPage ends a page early, with the record that brings its bytes to this: 1000 of the largest records would take gigabytes.
const maxPage = 4 << 20

// parseQuery reads a query with the allowed parameters, and reports all its errors. An empty value means absent, since
// forms and tools send all their fields.
func parseQuery(raw, allowed string) (listQuery, error) {
	q := listQuery{
		page:   formsvc.PageQuery{Limit: formsvc.DefaultLimit, MaxBytes: maxPage},
		filter: formsvc.ResponseFilter{Metadata: map[string]string{}}, answers: map[string]formsvc.AnswerFilter{},
	}
	var f wire.Faults
	names, seen := strings.Fields(allowed), make(map[string]bool)
	for pair := range strings.SplitSeq(raw, "&") {
		escapedName, escapedValue, _ := strings.Cut(pair, "=")
		name, ok := unescape(escapedName)
		known, key := name, ""
		if of, rest, keyed := strings.Cut(name, "["); keyed && len(rest) > 1 && strings.HasSuffix(rest, "]") {
			known, key = of+"[name]", rest[:len(rest)-1]
		}
		switch {
		case pair == "":
		case !ok:
			f.Add("", "invalid_encoding", undecodedParameter)
		case !slices.Contains(names, known):
			if len(name) > maxParameterNamed || strings.IndexByte(name, 0) >= 0 {
				name = ""
			}
			f.Add(name, "unknown_parameter", unknownParameter)
		case escapedValue == "": // means absent
		case seen[name] && name != "status" && name != "event" && name != "column" && known != anyAnswer:
			f.Add(name, "repeated_parameter", repeatedParameter)
		default:
			seen[name] = true
			if code, detail := q.take(known, key, escapedValue); code != "" {
				f.Add(name, code, detail)
			}
		}
	}
	if seen["cursor"] && seen["offset"] {
		f.Add("cursor", "not_applicable", "can't be combined with offset")
	}
	if seen["cursor"] && slices.Contains(names, "event") && q.order == "desc" {
		f.Add("cursor", "not_applicable", "can't be combined with order=desc")
	}
	if len(f) > 0 {
		return q, invalidParameter(f)
	}
	slices.Sort(q.filter.Status) // so that equivalent queries are equal
	q.filter.Status = slices.Compact(q.filter.Status)
	return q, nil
}

// invalidParameter returns the problem for a query; the pointers in list are names of parameters.
func invalidParameter(list []formsvc.FieldError) *wire.Problem {
	return &wire.Problem{
		Status: http.StatusBadRequest, Code: "invalid_parameter", Fields: list, Query: true,
		Detail: "The query has invalid parameters; errors lists them.",
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

// take sets one parameter, or one key of it, or returns what is wrong with its value.
func (q *listQuery) take(name, key, escaped string) (code, detail string) {
	value, ok := unescape(escaped)
	switch {
	case !ok:
		return "invalid_encoding", undecodedParameter
	case len(value) > maxValue(name):
		return "too_long", "is too long"
	case strings.IndexByte(key+value, 0) >= 0:
		return "nul_not_allowed", wire.NoNUL
	}
	switch name {
	case "status":
		if len(q.filter.Status) == maxStatuses {
			return "too_many", "must be there at most 20 times"
		}
		q.filter.Status = append(q.filter.Status, value)
	case anyMetadata:
		if len(q.filter.Metadata) == maxStatuses {
			return "too_many", "must be there for at most 20 names"
		}
		q.filter.Metadata[key] = value
	case anyAnswer, "answerFrom[name]", "answerTo[name]":
		return q.takeAnswer(name, key, value)
	case "email":
		q.filter.Email = value
	case "reference":
		q.filter.Reference = value
	case "createdAfter":
		return setTime(&q.filter.CreatedAfter, value, 0)
	case "createdBefore":
		return setTime(&q.filter.CreatedBefore, value, time.Millisecond-1)
	case "updatedAfter":
		return setTime(&q.filter.UpdatedAfter, value, 0)
	case "cursor":
		q.cursor = value
	case "module":
		q.module = value
	default:
		return q.choose(name, value)
	}
	return "", ""
}

// takeAnswer adds to the filter of a question.
func (q *listQuery) takeAnswer(name, question, value string) (code, detail string) {
	f, ok := q.answers[question]
	switch {
	case !ok && len(q.answers) == maxStatuses:
		return "too_many", "must be there for at most 20 names"
	case name == anyAnswer && len(f.Any) == maxChosen:
		return "too_many", "must be there at most 100 times"
	case name == anyAnswer:
		f.Any = append(f.Any, value)
	case name == "answerTo[name]":
		f.To = value
	default:
		f.From = value
	}
	q.answers[question] = f
	return "", ""
}

// searchOf returns the search in the responses of a campaign with these modules, nil for all.
func (q *listQuery) searchOf(modules []formsvc.Module, zone *time.Location) (*formsvc.Search, error) {
	if q.search == "" && len(q.answers) == 0 {
		return nil, nil //nolint:nilnil // no search
	}
	search := formsvc.NewSearch(q.search, modules, zone)
	var faults wire.Faults
	for _, name := range slices.Sorted(maps.Keys(q.answers)) {
		if invalid, ok := errors.AsType[*formsvc.ValidationError](search.Where(name, q.answers[name])); ok {
			for _, f := range invalid.Fields {
				faults.Add(f.Pointer[1:]+"["+name+"]", f.Code, f.Detail)
			}
		}
	}
	if len(faults) > 0 {
		return nil, invalidParameter(faults)
	}
	return search, nil
}

// choose sets one of the parameters that don't take every text.
func (q *listQuery) choose(name, value string) (code, detail string) {
	ok := true
	switch name {
	case "limit":
		q.page.Limit, ok = parseCount(value)
		detail, ok = "must be an integer from 1 on; values above 1000 are clamped", ok && q.page.Limit > 0
		q.page.Limit = min(q.page.Limit, formsvc.MaxLimit)
	case "offset":
		q.page.Offset, ok = parseCount(value)
		detail, ok = "must be an integer from 0 to 2147483647", ok && q.page.Offset <= maxOffset
	case "order":
		q.order, q.page.Ascending = value, value == "asc"
		detail, ok = "must be asc or desc", value == "asc" || value == "desc"
	case "state":
		q.state = formsvc.DeliveryState(value)
		states := []formsvc.DeliveryState{formsvc.DeliveryPending, formsvc.DeliveryDelivered, formsvc.DeliveryFailed}
		detail, ok = "must be pending, delivered or failed", slices.Contains(states, q.state)
	case "search":
		if q.search = value; utf8.RuneCountInString(value) > maxSearch {
			return "too_long", "is too long"
		}
	case "campaignUuid":
		if q.campaign, ok = formsvc.ParseID(value); !ok {
			return "invalid_uuid", "must be a UUID"
		}
	case "event":
		event, known := formsvc.EventType(value), webhook.KnownEventTypes()
		if !slices.Contains(known, event) {
			return "unknown_event", fmt.Sprintf("must be one of %v", known)
		}
		if !slices.Contains(q.events, event) {
			q.events = append(q.events, event)
		}
	case "column":
		if len(q.columns) > maxChosen { // which is said once
			break
		}
		repeated := slices.Contains(q.columns, value)
		if q.columns = append(q.columns, value); repeated {
			return "repeated_parameter", "must name each column once"
		}
		if len(q.columns) > maxChosen {
			return "too_many", "must be there at most 100 times"
		}
	}
	if !ok {
		return "invalid_value", detail
	}
	return "", ""
}

// setTime sets a bound in time. Records have whole milliseconds, so it is rounded to one that lets the same records through: down, or
// up if a millisecond less one nanosecond is added.
func setTime(bound *time.Time, value string, add time.Duration) (code, detail string) {
	t, ok := wire.ParseTime(value)
	*bound = t.Add(add).Truncate(time.Millisecond)
	switch {
	case ok:
		return "", ""
	case strings.IndexByte(value, ' ') >= 0:
		return "invalid_timestamp", unescapedPlus
	}
	return "invalid_timestamp", wire.BadTime
}

// parseCount reads a number of digits only. A number that is too large for any use is above maxOffset.
func parseCount(s string) (n int, ok bool) {
	count, err := strconv.ParseUint(s, 10, 32)
	return int(count), err == nil || errors.Is(err, strconv.ErrRange)
}
