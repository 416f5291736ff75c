package httpx_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v3"

	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

var update = flag.Bool("update", false, "generate openapi.json from openapi.yaml")

// The served document is the YAML file as JSON.
func TestOpenAPIJSON(t *testing.T) {
	source := must(os.ReadFile("openapi.yaml"))
	var root yaml.Node
	noError(t, yaml.Unmarshal(source, &root))
	var compact, want bytes.Buffer
	writeJSON(t, &compact, root.Content[0])
	noError(t, json.Indent(&want, withSamples(t, compact.Bytes()), "", " "))
	want.WriteByte('\n')
	if *update {
		noError(t, os.WriteFile("openapi.json", want.Bytes(), 0o644))
	}
	got := must(os.ReadFile("openapi.json"))
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("openapi.json is not openapi.yaml: run go generate ./httpx")
	}
}

// writeJSON writes a YAML value as JSON, with the fields in their order.
func writeJSON(t *testing.T, b *bytes.Buffer, node *yaml.Node) {
	t.Helper()
	switch node.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i, pair := range merged(node) {
			if i > 0 {
				b.WriteByte(',')
			}
			name := must(json.Marshal(pair.name))
			b.Write(name)
			b.WriteByte(':')
			writeJSON(t, b, pair.value)
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, element := range node.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(t, b, element)
		}
		b.WriteByte(']')
	case yaml.ScalarNode:
		var v any
		noError(t, node.Decode(&v))
		encoder := json.NewEncoder(b)
		encoder.SetEscapeHTML(false)
		noError(t, encoder.Encode(v))
	case yaml.AliasNode:
		writeJSON(t, b, node.Alias)
	default:
		t.Fatalf("line %d: what is that?", node.Line)
	}
}

// A member is a field of an object.
type member struct {
	name  string
	value *yaml.Node
}

// merged returns the fields of a mapping, including those that "<<" merges into it. The mapping's own fields replace merged ones:
// JSON readers such as Swagger UI refuse an object with two fields of one name.
func merged(node *yaml.Node) []member {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	var list []member
	for i := 0; i < len(node.Content); i += 2 {
		name, value := node.Content[i].Value, node.Content[i+1]
		if name == "<<" {
			list = append(list, merged(value)...)
			continue
		}
		if j := slices.IndexFunc(list, func(m member) bool { return m.name == name }); j >= 0 {
			list[j].value = value
			continue
		}
		list = append(list, member{name, value})
	}
	return list
}

// The document is valid with its examples, and agrees with the table of routes.
func TestOpenAPIDocument(t *testing.T) {
	c := theContract(t)
	if err := c.doc.Validate(t.Context()); err != nil || !strings.HasPrefix(c.doc.OpenAPI, "3.1.") {
		t.Errorf("OpenAPI %s: %v", c.doc.OpenAPI, err)
	}
	specified := []string{ // by the specification; others are extensions
		"listCampaigns", "createCampaign", "getCampaign", "replaceCampaign", "listResponses", "createResponse", "getResponse",
		"updateResponse", "uploadFile", "downloadFile", "getDocs", "getDocsFile", "getOpenAPI",
	}
	for _, r := range httpx.Routes() {
		o := c.operations[r.Method+" "+r.Pattern]
		if o == nil {
			t.Errorf("%s %s is not documented", r.Method, r.Pattern)
			continue
		}
		security, named := openapi3.SecurityRequirements{}, ""
		if !r.Public {
			security = append(security, openapi3.SecurityRequirement{"apiKey": {}})
		}
		if r.Permission != "" {
			security[0]["apiKey"], named = []string{string(r.Permission)}, "`"+string(r.Permission)+"`"
		}
		if r.Also != "" {
			security[0]["apiKey"] = append(security[0]["apiKey"], string(r.Also))
		}
		if o.OperationID != r.Name || o.Security == nil || !reflect.DeepEqual(*o.Security, security) {
			t.Errorf("%s: operationId %s, security %v, want %v", r.Name, o.OperationID, o.Security, security)
		}
		if first := regexp.MustCompile("`[a-z]+:(read|write)`").FindString(o.Description); r.Permission != "" && first != named {
			t.Errorf("%s: the description names %s, want %s first", r.Name, first, named)
		}
		if (o.Responses.Status(401) == nil) != r.Public || (o.Responses.Status(403) == nil) != (r.Permission == "") {
			t.Errorf("%s: 401 or 403 is documented wrongly", r.Name)
		}
		for _, status := range []int{429, 500, 503, 507} {
			if o.Responses.Status(status) == nil && !r.Public && (status != 507 || r.Method != http.MethodGet) {
				t.Errorf("%s: %d is not documented", r.Name, status)
			}
		}
		if o.Summary == "" || len(o.Tags) != 1 || strings.HasSuffix(o.Tags[0], "(extension)") == slices.Contains(specified, r.Name) {
			t.Errorf("%s: summary %q, tags %q", r.Name, o.Summary, o.Tags)
		}
	}
	equal(t, len(c.operations), len(httpx.Routes()), "%d routes")
	equal(t, len(c.doc.Webhooks), len(webhook.KnownEventTypes()), "%d")
}

// Every type of event, raised over the API and sent by the engine, matches the document, in the delivery and in the list of events.
func TestEveryDeliveryIsAsDocumented(t *testing.T) {
	w := newWorld(t, nil)
	engine, c := w.engine(), theContract(t)
	r := newReceiver(t)
	var events []string
	for _, event := range webhook.KnownEventTypes() {
		events = append(events, `"`+string(event)+`"`)
	}
	hook := w.do("POST", "/v1/webhooks", `{"url":"`+r.URL+`","events":[`+strings.Join(events, ",")+
		`],"headers":{"X-Token":"for the receiver"}}`).is(201, "")
	verifier, err := webhook.NewVerifier([]string{hook.text("secret")}, nil)
	noError(t, err)
	campaign, response := w.pair()
	for _, patch := range []string{`{"responses":{"color":{"value":["red"]}}}`, `{"status":"validated"}`, `{"status":"completed"}`} {
		w.do("PATCH", response, patch).is(200, "")
	}
	w.do("POST", response+"/files", "{}").is(201, "")
	w.do("POST", response+"/signatures", plainSignature).is(201, "")
	w.do("POST", campaign+"/responses", answers(`{"a":{"value":["`+strings.Repeat("x", formsvc.MaxPayload)+`"]}}`)).is(201, "")
	w.do("DELETE", response, "").is(204, "")
	for _, event := range events { // a test event has the first type of the webhook
		w.do("POST", w.webhook(`{"url":"`+r.URL+`/one","events":[`+event+`]}`)+"/test", "").is(201, "")
	}
	for n := 1; n > 0; {
		n = must(engine.RunOnce(t.Context()))
	}
	seen, truncated, test, signed := map[webhook.EventType]bool{}, 0, 0, 0
	for i, body := range r.bodies { // newReceiver has checked them
		if r.headers[i].Get("X-Token") == "for the receiver" {
			signed++
			if _, err := verifier.Verify([]byte(body), r.headers[i]); err != nil {
				t.Errorf("not signed with the secret that the API showed: %v", err)
			}
		}
		e := must(webhook.ParseEvent([]byte(body)))
		if seen[e.Type] = true; e.Data.Truncated {
			truncated++
		}
		if e.Test {
			test++
		}
	}
	if len(seen) != len(events) || truncated == 0 || test != len(events) || signed < len(events) ||
		strings.Contains(w.log.String(), "for the receiver") {
		t.Errorf("arrived: %v, %d truncated, %d tests, %d signed; log %s", seen, truncated, test, signed, w.log)
	}
	if w.do("GET", hook.header.Get("Location")+"/deliveries?state=delivered", "").is(200, "").at("total") != float64(signed) {
		t.Errorf("the API doesn't show %d deliveries", signed)
	}
	for _, item := range w.feed("").Items {
		var e webhook.Event
		noError(t, json.Unmarshal(item, &e))
		if err := c.fitsEvent(string(e.Type), item); err != nil {
			t.Errorf("%s in the list of events: %v", e.Type, err)
		}
	}
}

// The document names the address that clients are to use, by which it is cached.
func TestOpenAPIServers(t *testing.T) {
	w := newWorld(t, nil)
	server := func(api http.Handler, target, example string) (address, tag string) {
		t.Helper()
		reply := browse(api, "GET", target)
		body := string(content(t, reply.Body))
		var doc struct{ Servers []struct{ URL string } }
		if decode(t, body, &doc); len(doc.Servers) != 1 || !strings.Contains(body, "curl '"+example+"/v1/me'") {
			t.Fatalf("%v, and the examples' server is not %s", doc, example)
		}
		return doc.Servers[0].URL, reply.Header.Get("Etag")
	}
	got, tag := server(w.api, "/openapi.json", "http://127.0.0.1:8080")
	equal(t, got, "/", "the server is %q")
	w.do("GET", "/openapi.json", "", header("If-None-Match", tag)).is(304, "")
	if got, _ = server(http.StripPrefix("/forms/api", w.api), "/forms/api/openapi.json", "http://127.0.0.1:8080/forms/api"); got != "/forms/api" {
		t.Errorf("under a prefix the server is %q", got)
	}
	w.serve(&httpx.Options{BaseURL: `https://forms.example.com/"api"/`})
	if got, _ = server(w.api, "/openapi.json", `https://forms.example.com/\"api\"`); got != `https://forms.example.com/"api"` {
		t.Errorf("with a BaseURL the server is %q", got)
	}
	w.do("GET", "/openapi.json", "", header("If-None-Match", tag)).is(200, "")
}

// A receiver is a real server that checks each delivery against the OpenAPI document and keeps it.
type receiver struct {
	*httptest.Server

	mu      sync.Mutex
	headers []http.Header
	bodies  []string
}

func newReceiver(tb testing.TB) *receiver {
	r := new(receiver)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			tb.Error(err)
		}
		checkDelivery(tb, req.Header, body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.headers, r.bodies = append(r.headers, req.Header), append(r.bodies, string(body))
		w.WriteHeader(http.StatusNoContent)
	}))
	tb.Cleanup(r.Close)
	return r
}

// engine returns an engine that uses the world's clock and may send to this machine, where receivers run.
func (w *world) engine() *delivery.Engine {
	w.tb.Helper()
	engine := must(delivery.New(w.queue(), &delivery.Options{
		Now: func() time.Time { return w.now }, Logger: slog.New(slog.NewTextHandler(w.log, nil)),
		Control: func(string, string, syscall.RawConn) error { return nil },
	}))
	return engine
}
