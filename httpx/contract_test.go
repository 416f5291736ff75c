package httpx_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/storage/memory"
)

// A contract is the served OpenAPI document, prepared for checking responses.
type contract struct {
	doc        *openapi3.T
	operations map[string]*openapi3.Operation // by method and path, as in Request.Pattern

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema // by their JSON Pointer
}

// anyProblem is the schema of problems that belong to no operation. Like closed objects, only the tests have it.
const anyProblem = "#/components/schemas/AnyProblem"

var loadContract = sync.OnceValues(func() (*contract, error) {
	svc, err := formsvc.New(memory.New(), nil)
	if err != nil {
		return nil, err
	}
	api, err := httpx.New(svc, nil)
	if err != nil {
		return nil, err
	}
	recorder := httptest.NewRecorder()
	api.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	c := &contract{operations: map[string]*openapi3.Operation{}, compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	if c.doc, err = openapi3.NewLoader().LoadFromData(recorder.Body.Bytes()); err != nil {
		return nil, err
	}
	for path, item := range c.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			operation.Parameters = append(operation.Parameters, item.Parameters...)
			c.operations[method+" "+path] = operation
		}
	}
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(recorder.Body.Bytes()))
	if err != nil {
		return nil, err
	}
	closeObjects(root, "")
	schemas := root.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any) //nolint:forcetypeassert // a broken document panics
	delete(schemas["Problem"].(map[string]any), "unevaluatedProperties")                        //nolint:forcetypeassert // as above
	schemas["AnyProblem"] = map[string]any{"$ref": "#/components/schemas/Problem", "unevaluatedProperties": false}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	return c, c.compiler.AddResource(documentURL, root)
})

const documentURL = "https://example.com/openapi.json"

// theContract returns the document, or fails the test.
func theContract(tb testing.TB) *contract {
	tb.Helper()
	return must(loadContract())
}

// closeObjects forbids undocumented members. The document leaves responses open for clients, but the tests must find them.
func closeObjects(v any, keyword string) {
	switch v := v.(type) {
	case map[string]any:
		if (v["properties"] != nil || v["allOf"] != nil) && v["additionalProperties"] == nil && keyword != "allOf" {
			v["unevaluatedProperties"] = false
		}
		for name, member := range v {
			if name != "example" && name != "examples" {
				closeObjects(member, name)
			}
		}
	case []any:
		for _, element := range v {
			closeObjects(element, keyword)
		}
	}
}

// fits checks a value against the schema at a JSON Pointer.
func (c *contract) fits(pointer string, value any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	schema := c.schemas[pointer]
	if schema == nil {
		var err error
		if schema, err = c.compiler.Compile(documentURL + "#" + (&url.URL{Fragment: strings.TrimPrefix(pointer, "#")}).EscapedFragment()); err != nil {
			return err
		}
		c.schemas[pointer] = schema
	}
	return schema.Validate(value)
}

// fitsJSON checks a JSON text.
func (c *contract) fitsJSON(pointer string, text []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%w: %.300s", err, text)
	}
	if err = c.fits(pointer, v); err != nil {
		return fmt.Errorf("%w: %.300s", err, text)
	}
	return nil
}

// pointer joins the parts of a JSON Pointer, or returns the target of a reference.
func pointer(ref string, parts ...string) string {
	if ref != "" {
		return ref
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, part := range parts {
		ref += "/" + escape.Replace(part)
	}
	return "#" + ref
}

// checked wraps a handler and checks every response against the document, and that accepted requests are documented.
// open means that the handler accepts requests without a key.
func (w *world) checked(next http.Handler, open bool) http.Handler {
	c := &checker{next: next, tb: func() testing.TB { return w.tb }, contract: theContract(w.tb), open: open}
	w.tb.Cleanup(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = true
	})
	return c
}

type checker struct {
	next     http.Handler
	tb       func() testing.TB // changes while fuzzing
	contract *contract
	open     bool

	mu    sync.Mutex
	ended bool // a test that is over can't report errors
}

// mostChecked is the limit of bodies that are checked.
const mostChecked = 1 << 20

// A capture keeps a body of up to mostChecked bytes.
type capture struct {
	kept []byte
	size int
}

func (k *capture) Write(p []byte) (int, error) {
	if k.size += len(p); k.size <= mostChecked {
		k.kept = append(k.kept, p...)
	}
	return len(p), nil
}

// An exchanged is a request with its response.
type exchanged struct {
	http.ResponseWriter
	r          *http.Request
	sent, body capture
	status     int
	header     http.Header
}

// Unwrap is for [http.ResponseController].
func (x *exchanged) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (x *exchanged) WriteHeader(status int) {
	if x.status == 0 && status >= http.StatusOK {
		x.status, x.header = status, x.Header().Clone()
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (x *exchanged) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	n, err := x.ResponseWriter.Write(p)
	if _, _ = x.body.Write(p[:n]); err != nil {
		x.body.size = mostChecked + 1 // incomplete
	}
	return n, err
}

// ServeHTTP implements http.Handler.
func (c *checker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchanged{ResponseWriter: w, r: r.WithContext(r.Context())} // the handler sets Pattern in the copy
	if r.Body != nil && r.Body != http.NoBody {
		x.r.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(r.Body, &x.sent), r.Body}
	}
	c.next.ServeHTTP(x, x.r)
	if err := c.check(x); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.ended {
			c.tb().Errorf("OpenAPI: %s %s: %d: %v", r.Method, r.URL.Path, x.status, err)
		}
	}
}

func (c *checker) check(x *exchanged) error {
	operation := c.contract.operations[x.r.Pattern]
	switch {
	case x.status == 499 || x.r.URL.Path == "/docs/" && x.status == http.StatusPermanentRedirect: // no client sees it, or it leads to the page
		return nil
	case operation != nil:
	case x.status != http.StatusNotFound && x.status != http.StatusMethodNotAllowed:
		return fmt.Errorf("not documented, so it must be 404 or 405")
	case x.r.Method == http.MethodHead:
		return nil
	default:
		return c.contract.fitsJSON(anyProblem, x.body.kept)
	}
	response := operation.Responses.Status(x.status)
	if response == nil {
		return fmt.Errorf("the status is not documented: %.300s", x.body.kept)
	}
	method, path, _ := strings.Cut(x.r.Pattern, " ")
	at := []string{"paths", path, strings.ToLower(method)}
	if err := c.checkHeader(x, response, append(slices.Clone(at), "responses", fmt.Sprint(x.status))); err != nil {
		return err
	}
	if x.status < http.StatusMultipleChoices {
		return c.checkRequest(x, operation, at)
	}
	return nil
}

// checkHeader checks the headers of a response, and then its body.
func (c *checker) checkHeader(x *exchanged, response *openapi3.ResponseRef, at []string) error {
	base := pointer(response.Ref, at...)
	documented := map[string]*openapi3.HeaderRef{}
	for name, header := range response.Value.Headers {
		documented[http.CanonicalHeaderKey(name)] = header
		if header.Value.Required && len(x.header.Values(name)) == 0 {
			return fmt.Errorf("the header %s is missing", name)
		}
		if value := x.header.Get(name); value != "" && header.Value.Schema != nil {
			schema := pointer(header.Ref, "headers", name)
			if header.Ref == "" {
				schema = base + strings.TrimPrefix(schema, "#")
			}
			if err := c.contract.fits(schema+"/schema", typed(header.Value.Schema.Value, value)); err != nil {
				return fmt.Errorf("the header %s: %q: %w", name, value, err)
			}
		}
	}
	general := []string{
		"Connection", "Content-Length", "Content-Type", "Date", "Cache-Control", "Vary", "X-Content-Type-Options",
		"Content-Security-Policy", "Cross-Origin-Resource-Policy", "Cross-Origin-Opener-Policy", "Referrer-Policy",
	}
	for name := range x.header {
		if documented[name] == nil && !slices.Contains(general, name) {
			return fmt.Errorf("the header %s is not documented", name)
		}
	}
	return c.checkBody(x, response.Value.Content, base)
}

func (c *checker) checkBody(x *exchanged, content openapi3.Content, base string) error {
	contentType := x.header.Get("Content-Type")
	mediaType, _, _ := mime.ParseMediaType(contentType)
	if len(content) == 0 && contentType == "" && x.body.size == 0 {
		return nil
	}
	if content.Get(mediaType) == nil {
		return fmt.Errorf("the media type %q is not documented", contentType)
	}
	schema := base + "/content" + strings.TrimPrefix(pointer("", mediaType), "#") + "/schema"
	switch {
	case x.r.Method == http.MethodHead || x.body.size > mostChecked || content[mediaType] == nil: // or it is a file
		return nil
	case strings.HasSuffix(mediaType, "json") && mediaType != "application/x-ndjson":
		return c.contract.fitsJSON(schema, x.body.kept)
	case mediaType == "application/x-ndjson":
		for line := range bytes.Lines(x.body.kept) {
			if err := c.contract.fitsJSON("#/components/schemas/Response", line); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkRequest checks that a request that succeeded is documented.
func (c *checker) checkRequest(x *exchanged, operation *openapi3.Operation, at []string) error {
	if operation.Security != nil && len(*operation.Security) > 0 && !c.open && x.r.Header.Get("Authorization") == "" {
		return fmt.Errorf("answered without a key")
	}
	for name, values := range x.r.URL.Query() {
		name, _, _ = strings.Cut(name, "[")
		if operation.Parameters.GetByInAndName("query", name) == nil && strings.Join(values, "") != "" {
			return fmt.Errorf("the parameter %q was accepted, but is not documented", name)
		}
	}
	if operation.RequestBody == nil || operation.RequestBody.Value.Content["application/json"] == nil || x.sent.size == 0 || x.sent.size > mostChecked {
		return nil
	}
	return c.contract.fitsJSON(pointer("", append(at, "requestBody", "content", "application/json", "schema")...), x.sent.kept)
}

// typed returns the value of a header by its schema.
func typed(schema *openapi3.Schema, text string) any {
	if schema.Type.Is("integer") {
		return json.Number(text)
	}
	if schema.Type.Is("boolean") {
		return text == "true"
	}
	return text
}

// checkDelivery checks a delivery against the webhooks of the document.
func checkDelivery(tb testing.TB, header http.Header, body []byte) {
	tb.Helper()
	c, event := theContract(tb), header.Get("X-Service-Event")
	item := c.doc.Webhooks[event]
	if item == nil {
		tb.Errorf("OpenAPI: the event %q is not documented", event)
		return
	}
	if err := c.fitsEvent(event, body); err != nil || header.Get("Content-Type") != "application/json" {
		tb.Errorf("OpenAPI: %s: %s: %v", event, header.Get("Content-Type"), err)
	}
	for name := range header { // others belong to HTTP, or to the webhook
		if (strings.HasPrefix(name, "X-Service-") || strings.HasPrefix(name, "Webhook-")) && !slices.ContainsFunc(item.Post.Parameters, func(p *openapi3.ParameterRef) bool {
			return strings.EqualFold(p.Value.Name, name)
		}) {
			tb.Errorf("OpenAPI: %s: the header %s is not documented", event, name)
		}
	}
	for i, p := range item.Post.Parameters {
		value := header.Get(p.Value.Name)
		schema := pointer(p.Ref, "webhooks", event, "post", "parameters", fmt.Sprint(i)) + "/schema"
		if err := c.fits(schema, typed(p.Value.Schema.Value, value)); err != nil {
			tb.Errorf("OpenAPI: %s: the header %s: %q: %v", event, p.Value.Name, value, err)
		}
	}
}

// fitsEvent checks a payload.
func (c *contract) fitsEvent(event string, body []byte) error {
	return c.fitsJSON(pointer("", "webhooks", event, "post", "requestBody", "content", "application/json", "schema"), body)
}
