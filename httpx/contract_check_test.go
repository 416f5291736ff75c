package httpx_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// How many bytes of a body are kept for checking. Of a longer body only the headers are checked.
const (
	maxChecked     = 1 << 20
	maxCheckedForm = 32 << 10
)

// checked wraps a handler and checks every request and reply against the OpenAPI document. It changes nothing: it sees
// a body as the handler reads it, and a reply as it is sent. It skips broken-off bodies. tb is called at each
// violation, since fuzzing changes it. open means that the handler accepts requests without a key.
func checked(tb func() testing.TB, next http.Handler, open bool) http.Handler {
	c := &checker{next: next, tb: tb, open: open, told: map[string]bool{}, kinds: map[string]bool{}}
	c.contract, c.err = loadContract()
	tb().Cleanup(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = true
	})
	return c
}

type checker struct {
	next     http.Handler
	tb       func() testing.TB
	open     bool
	contract *contract
	err      error
	invented bool // whether the replies come from a fake handler and don't count for coverage

	mu    sync.Mutex
	ended bool // whether the test is over, so that it can't report errors
	told  map[string]bool
	kinds map[string]bool // of passages that kin-openapi has checked
}

// ServeHTTP implements http.Handler.
func (c *checker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &passage{ResponseWriter: w, c: c, sent: kept{limit: bodyLimit(r.Header)}}
	x.r = r.WithContext(r.Context()) // a copy
	if r.Body != nil && r.Body != http.NoBody {
		x.r.Body = &tee{ReadCloser: r.Body, to: &x.sent}
	}
	if c.err == nil {
		x.operation, x.known = c.contract.find(r.Method, r.URL)
	}
	c.next.ServeHTTP(x, x.r)
	if c.err != nil {
		x.errorf("%v", c.err)
		return
	}
	x.check()
}

// bodyLimit returns how much of a request's body to keep.
func bodyLimit(header http.Header) int {
	switch mediaType, _, _ := mime.ParseMediaType(header.Get("Content-Type")); mediaType {
	case "application/json":
		return maxChecked
	case "multipart/form-data":
		return maxCheckedForm
	}
	return 0
}

// kept is the beginning of a body.
type kept struct {
	mu    sync.Mutex
	limit int
	data  []byte
	more  bool // whether there was more
	cut   bool // whether it was not read or sent to its end
}

func (k *kept) add(p []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.data)+len(p) > k.limit {
		k.more = k.more || len(p) > 0
		k.data = nil
		k.limit = 0
		return
	}
	k.data = append(k.data, p...)
}

// whole returns the body, if all of it was kept.
func (k *kept) whole() ([]byte, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.data, !k.more && !k.cut
}

// A tee keeps the bytes that are read.
type tee struct {
	io.ReadCloser
	to *kept
}

// Read implements io.Reader.
func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.to.add(p[:n])
	return n, err
}

// A passage is a request and its reply.
type passage struct {
	http.ResponseWriter
	c         *checker
	r         *http.Request
	sent      kept
	operation *operation // nil: none
	known     bool       // whether there is an operation with that path
	status    int        // 0 until the reply begins
	header    http.Header
	body      kept
}

// Unwrap is for [http.ResponseController].
func (x *passage) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (x *passage) WriteHeader(status int) {
	if x.status == 0 && status >= http.StatusOK {
		x.status, x.header = status, x.Header().Clone()
		x.body.limit = x.answerLimit()
	}
	x.ResponseWriter.WriteHeader(status)
}

// answerLimit returns how much of the reply's body to keep: nothing of a file.
func (x *passage) answerLimit() int {
	mediaType, _, _ := mime.ParseMediaType(x.header.Get("Content-Type"))
	if x.operation != nil && x.operation.answers[x.status] != nil {
		if _, ok := x.operation.answers[x.status].content[mediaType]; !ok {
			return 0
		}
	}
	switch mediaType {
	case "application/json", "application/problem+json", "application/x-ndjson":
		return maxChecked
	}
	return 0
}

// Write implements http.ResponseWriter.
func (x *passage) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	n, err := x.ResponseWriter.Write(p)
	x.body.add(p[:n])
	if err != nil {
		x.body.cut = true
	}
	return n, err
}

// mostTold is how often one test reports the same violation.
const mostTold = 20

func (x *passage) errorf(format string, args ...any) { x.tell(fmt.Sprintf(format, args...), nil) }

// tell reports a violation once, with its body.
func (x *passage) tell(mistake string, body []byte) {
	where := x.r.URL.Path
	if x.operation != nil {
		where = x.operation.path
	}
	text := fmt.Sprintf("contract: %s %s: %d: ", x.r.Method, where, x.status) + mistake
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	if x.c.ended || x.c.told[text] || len(x.c.told) == mostTold {
		return
	}
	x.c.told[text] = true
	if body != nil {
		x.c.tb().Errorf("%s\n%.300s", text, body)
		return
	}
	x.c.tb().Errorf("%s", text)
}

func (x *passage) check() {
	if x.status == 499 && x.r.Context().Err() != nil {
		return // no client sees it
	}
	if x.operation == nil {
		x.checkNowhere(x.known)
		return
	}
	answer := x.operation.answers[x.status]
	if answer == nil {
		body, _ := x.body.whole()
		x.tell("the status is not documented", body)
		return
	}
	x.checkHeader(answer.headers)
	x.checkBody(answer)
	if x.status < http.StatusBadRequest {
		x.checkRequest()
	}
	x.filter()
}

// find returns the operation, and reports whether the path has one with another method.
func (c *contract) find(method string, u *url.URL) (found *operation, known bool) {
	if u.RawPath != "" && u.RawPath != u.Path {
		return nil, false
	}
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for _, o := range c.operations {
		if o.matches(u.Path) {
			if known = true; o.method == method {
				return o, true
			}
		}
	}
	return nil, known
}

func (o *operation) matches(path string) bool {
	path, ok := strings.CutPrefix(cmp.Or(path, "/"), "/")
	parts := strings.Split(path, "/")
	if !ok || len(parts) != len(o.segments) {
		return false
	}
	for i, s := range o.segments {
		if s.parameter == nil && s.literal != parts[i] || s.parameter != nil && s.parameter.schema.Validate(parts[i]) != nil {
			return false
		}
	}
	return true
}

// checkNowhere checks the reply to a request that the document doesn't have.
func (x *passage) checkNowhere(known bool) {
	if x.r.URL.Path == "/docs/" && x.status == http.StatusPermanentRedirect {
		return // to the page for people
	}
	headers := map[string]*documented{"X-Request-Id": nil}
	status, code := http.StatusNotFound, "not_found"
	if known {
		status, code = http.StatusMethodNotAllowed, "method_not_allowed"
		headers["Allow"] = nil
	}
	if x.status != status {
		x.errorf("not documented, so it must be answered %d", status)
		return
	}
	x.checkHeader(headers)
	if body, ok := x.body.whole(); ok && x.r.Method != http.MethodHead {
		x.fits(x.c.contract.problem, body, "the problem")
		if got := codeOf(body); got != code {
			x.errorf("code %s, want %s", got, code)
		}
	}
}

func codeOf(body []byte) string {
	var p struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(body, &p)
	return p.Code
}

// general reports whether a header belongs to HTTP itself or to caches and browsers, so that the document needn't have
// it.
func general(name string) bool {
	switch name {
	case "Connection", "Content-Length", "Content-Type", "Date",
		"Cache-Control", "Vary", "X-Content-Type-Options",
		"Content-Security-Policy", "Cross-Origin-Resource-Policy", "Cross-Origin-Opener-Policy", "Referrer-Policy":
		return true
	}
	return false
}

// checkHeader checks the headers of the reply. One without a schema may have any value.
func (x *passage) checkHeader(headers map[string]*documented) {
	for name, values := range x.header {
		h, ok := headers[name]
		if !ok {
			if !general(name) {
				x.errorf("the header %s is not documented", name)
			}
			continue
		}
		if h == nil {
			continue
		}
		if err := h.fits(strings.Join(values, ", ")); err != nil {
			x.errorf("the header %s: %q: %v", name, values, err)
		}
		x.count("header " + name)
	}
	for name, h := range headers {
		if h != nil && h.required && len(x.header[name]) == 0 {
			x.errorf("the header %s is missing", name)
		}
	}
}

func (x *passage) checkBody(answer *answerDocument) {
	contentType := x.header.Get("Content-Type")
	body, whole := x.body.whole()
	if len(answer.content) == 0 {
		if x.body.more || len(body) > 0 || contentType != "" {
			x.errorf("a body of %q, but none is documented", contentType)
		}
		x.seen("")
		return
	}
	mediaType, _, _ := mime.ParseMediaType(contentType)
	schema, ok := byMediaType(answer.content, mediaType)
	if !ok {
		x.errorf("the media type %q is not documented", contentType)
		return
	}
	if x.r.Method == http.MethodHead {
		return
	}
	code := ""
	switch _, exact := answer.content[mediaType]; {
	case !whole || !exact: // or it is a file
	case mediaType == "application/json":
		x.countMembers(answer.shapes[mediaType], x.fits(schema, body, "the answer"))
	case mediaType == "application/problem+json":
		x.countMembers(answer.shapes[mediaType], x.fits(schema, body, "the problem"))
		if code = codeOf(body); !slices.Contains(answer.codes, code) {
			x.errorf("the code %s is not documented", code)
		}
	case mediaType == "application/x-ndjson":
		for line := range bytes.Lines(body) {
			x.fits(x.c.contract.line, line, "a line")
		}
	}
	x.seen(code)
}

// seen counts the reply for coverage. One to HEAD doesn't count for GET.
func (x *passage) seen(code string) {
	if x.r.Method == http.MethodHead {
		return
	}
	x.count(fmt.Sprintf("%s %d", x.operation.id, x.status))
	if code != "" {
		x.count(fmt.Sprintf("%s %d %s", x.operation.id, x.status, code))
	}
}

func (x *passage) count(what string) {
	if !x.c.invented {
		coverage.see(what)
	}
}

func (x *passage) countMembers(s *shape, v any) {
	if !x.c.invented {
		s.see(v)
	}
}

// byMediaType returns the schema of a media type, or of a range that includes it.
func byMediaType(content map[string]*jsonschema.Schema, mediaType string) (*jsonschema.Schema, bool) {
	major, _, _ := strings.Cut(mediaType, "/")
	for _, name := range []string{mediaType, major + "/*", "*/*"} {
		if schema, ok := content[name]; ok {
			return schema, true
		}
	}
	return nil, false
}

// fits checks a JSON body against the schema and returns its value.
func (x *passage) fits(schema *jsonschema.Schema, body []byte, what string) any {
	if schema == nil {
		x.errorf("%s has no schema", what)
		return nil
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = fit(schema, v)
	}
	if err != nil {
		x.tell(fmt.Sprintf("%s: %v", what, err), body)
		return nil
	}
	return v
}
