package httpx_test

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/formsvc/toolkit/httpx"
)

// theContract returns the document, or fails the test.
func theContract(tb testing.TB) *contract {
	tb.Helper()
	c, err := loadContract()
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// The document is valid, and agrees with the table of routes.
func TestOpenAPIDocument(t *testing.T) {
	c := theContract(t)
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(c.source)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil || !strings.HasPrefix(doc.OpenAPI, "3.1.") {
		t.Errorf("OpenAPI %s: %v", doc.OpenAPI, err)
	}
	if scheme := (node{c, "", c.root}).get("components", "securitySchemes", "apiKey"); scheme.get("type").text() != "http" ||
		scheme.get("scheme").text() != "bearer" {
		t.Errorf("the security scheme apiKey is %v", scheme.v)
	}
	documented := map[string]*operation{}
	for _, o := range c.operations {
		documented[o.method+" "+o.path] = o
		if o.get("summary").text() == "" || len(o.get("tags").elements()) == 0 {
			t.Errorf("%s: no summary, or no tag", o.id)
		}
	}
	for _, r := range httpx.Routes() {
		o := documented[r.Method+" "+r.Pattern]
		if o == nil {
			t.Errorf("%s %s is not documented", r.Method, r.Pattern)
			continue
		}
		delete(documented, r.Method+" "+r.Pattern)
		if o.id != r.Name {
			t.Errorf("%s has the operationId %s", r.Name, o.id)
		}
		o.checkSecurity(t, r)
	}
	for what := range documented {
		t.Errorf("%s is documented, but no route", what)
	}
}

// checkSecurity compares the operation's security with the route.
func (o *operation) checkSecurity(t *testing.T, r httpx.Route) {
	t.Helper()
	want := []any{map[string]any{"apiKey": []any{}}}
	switch {
	case r.Public:
		want = []any{}
	case r.Permission != "":
		want = []any{map[string]any{"apiKey": []any{string(r.Permission)}}}
	}
	if got := o.get("security").v; !reflect.DeepEqual(got, want) {
		t.Errorf("%s: security is %v, want %v", r.Name, got, want)
	}
	named := regexp.MustCompile("`[a-z]+:(read|write)`").FindString(o.get("description").text())
	if r.Permission != "" && named != "`"+string(r.Permission)+"`" {
		t.Errorf("%s: the description names the permission %s, want `%s` first", r.Name, named, r.Permission)
	}
	if _, ok := o.answers[http.StatusUnauthorized]; ok == r.Public {
		t.Errorf("%s: 401 is documented: %t", r.Name, ok)
	}
	if _, ok := o.answers[http.StatusForbidden]; ok != (r.Permission != "") {
		t.Errorf("%s: 403 is documented: %t", r.Name, ok)
	}
}

// The document has exactly the parameters that the code accepts, for every operation. Routes that ignore their query
// are skipped.
func TestOpenAPIQueries(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	campaign := w.campaign(plainCampaign)
	names := parameterNames(t)
	for _, s := range w.requests(campaign, w.response(campaign)) {
		o := documentOf(t, s.Route)
		looks := o.answers[http.StatusBadRequest] != nil && slices.Contains(o.answers[http.StatusBadRequest].codes, "invalid_parameter")
		for _, name := range append([]string{"zzz"}, names...) {
			p := o.parameter("query", name)
			value := "1"
			if p != nil {
				value = p.sample()
			}
			if s.Method == http.MethodDelete && p == nil && !looks {
				continue // otherwise it would delete the record
			}
			a := w.do(s.Method, s.path+"?"+name+"="+url.QueryEscape(value), s.body)
			unknown := strings.Contains(a.body, `{"parameter":"`+name+`","code":"unknown_parameter"`)
			if unknown != (p == nil && looks) {
				t.Errorf("%s?%s: documented %t, but %d %s", s.Name, name, p != nil, a.status, a.body)
			}
			if p == nil && looks {
				a.is(400, "invalid_parameter").faults(name + " unknown_parameter")
			}
		}
		for _, p := range o.parameters {
			if p.in == "query" && !slices.Contains(names, p.name) {
				t.Errorf("%s?%s is documented, but unknown in query.go", s.Name, p.name)
			}
		}
	}
}

// sample returns the example of a parameter in query form, or "" for a cursor.
func (d *documented) sample() string {
	examples := d.examples()
	if len(examples) == 0 {
		return "x"
	}
	if list, ok := examples[0].v.([]any); ok && len(list) > 0 {
		return fmt.Sprint(list[0])
	}
	return fmt.Sprint(examples[0].v)
}

// documentOf returns the operation of a route, or fails the test.
func documentOf(tb testing.TB, r httpx.Route) *operation {
	tb.Helper()
	c := theContract(tb)
	i := slices.IndexFunc(c.operations, func(o *operation) bool { return o.id == r.Name })
	if i < 0 {
		tb.Fatalf("%s is not documented", r.Name)
	}
	return c.operations[i]
}

// examples returns the examples beside a schema.
func (n node) examples() []node {
	var list []node
	if example := n.get("example"); example.there() {
		list = append(list, example)
	}
	for _, example := range n.get("examples").members() {
		list = append(list, example.get("value"))
	}
	return list
}

// Every example matches its schema.
func TestOpenAPIExamples(t *testing.T) {
	x := &exampleChecker{t: t, c: theContract(t), seen: map[string]bool{}}
	root := node{x.c, "", x.c.root}
	x.walk(root)
	for _, schema := range root.get("components", "schemas").members() {
		x.inSchema(schema)
	}
	if x.found == 0 {
		t.Error("no examples")
	}
}

// An exampleChecker finds and checks examples.
type exampleChecker struct {
	t     *testing.T
	c     *contract
	seen  map[string]bool // schemas
	found int
}

func (x *exampleChecker) check(example, schema node) {
	x.t.Helper()
	x.found++
	if err := fit(schema.schema(), example.v); err != nil {
		x.t.Errorf("%s: %v", example.at, err)
	}
}

// walk visits everything but schemas.
func (x *exampleChecker) walk(n node) {
	own, _ := n.v.(map[string]any)
	if schema := (node{x.c, n.at + "/schema", own["schema"]}); schema.there() {
		for _, example := range n.examples() {
			x.check(example, schema)
		}
		x.inSchema(schema)
	}
	for name := range own {
		switch name {
		case "example", "examples", "schema", "$ref":
		default:
			x.walk(n.get(name))
		}
	}
	list, _ := n.v.([]any)
	for i, v := range list {
		x.walk(node{x.c, fmt.Sprintf("%s/%d", n.at, i), v})
	}
}

// inSchema visits a schema and all its subschemas.
func (x *exampleChecker) inSchema(n node) {
	if x.seen[n.at] {
		return
	}
	x.seen[n.at] = true
	own, _ := n.v.(map[string]any)
	for _, keyword := range []string{"example", "default"} {
		if v, ok := own[keyword]; ok {
			x.check(node{x.c, n.at + "/" + keyword, v}, n)
		}
	}
	examples, _ := own["examples"].([]any)
	for i, v := range examples {
		x.check(node{x.c, fmt.Sprintf("%s/examples/%d", n.at, i), v}, n)
	}
	for _, s := range n.subschemas() {
		x.inSchema(s.node)
	}
}
