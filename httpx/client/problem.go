package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// A Problem is a refusal of the service: a problem document (RFC 9457). Branch on Code, which is stable.
type Problem struct { //nolint:errname // as RFC 9457 has it
	Status     int                `json:"status"`
	Code       string             `json:"code"` // "" if the reply isn't the service's, but that of a proxy
	Title      string             `json:"title"`
	Detail     string             `json:"detail"` // for people
	RequestID  string             `json:"requestId"`
	Permission formsvc.Permission `json:"permission"` // with 403: what the key lacks
	Allowed    []string           `json:"allowed"`    // with transition_not_allowed: the statuses that may follow
	Errors     []Fault            `json:"errors"`     // everything that is wrong, at most 100
	RetryAfter time.Duration      `json:"-"`          // how long the service wants to be left alone
}

// A Fault is one invalid field or parameter.
type Fault struct {
	Pointer   string `json:"pointer"`   // the field of the body, as a JSON Pointer (RFC 6901)
	Parameter string `json:"parameter"` // or the parameter of the query
	Code      string `json:"code"`      // stable
	Detail    string `json:"detail"`    // for people
}

// Error implements error.
func (p *Problem) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "formsvc: %d %s: %s", p.Status, cmp.Or(p.Code, p.Title), p.Detail)
	for _, f := range p.Errors {
		fmt.Fprintf(&b, "; %s: %s", cmp.Or(f.Pointer, f.Parameter, "/"), f.Detail)
	}
	if p.RequestID != "" {
		fmt.Fprintf(&b, " (request %s)", p.RequestID)
	}
	return b.String()
}

// Is reports whether target is the error of package formsvc that the service failed with.
func (p *Problem) Is(target error) bool {
	return target == wire.Sentinel(p.Status, p.Code)
}

// maxProblem is the limit of bytes that are read of a refusal.
const maxProblem = 1 << 20

// problemOf returns the problem in a refusal, which another server may have sent.
func problemOf(r *reply) *Problem {
	p := new(Problem)
	text, _ := io.ReadAll(io.LimitReader(r.body, maxProblem)) // a part isn't JSON
	if !strings.Contains(r.header.Get("Content-Type"), "json") || json.Unmarshal(text, p) != nil || p.Status != r.status {
		p = &Problem{Title: http.StatusText(r.status), Detail: "The reply isn't one of the service."}
	}
	p.Status, p.RequestID = r.status, cmp.Or(p.RequestID, r.header.Get("X-Request-Id"))
	retry := r.header.Get("Retry-After")
	if seconds, err := strconv.Atoi(retry); err == nil {
		p.RetryAfter = time.Duration(max(0, min(seconds, 1<<31))) * time.Second
	} else if at, err := http.ParseTime(retry); err == nil {
		p.RetryAfter = max(0, time.Until(at))
	}
	return p
}
