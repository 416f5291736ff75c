package httpx_test

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/storage/memory"
)

// A contract is the OpenAPI document, prepared for checking requests and replies. It is immutable.
type contract struct {
	source     []byte
	root       any
	doc        *openapi3.T // as parsed by kin-openapi
	operations []*operation
	webhooks   map[string]*operation // by event
	problem    *jsonschema.Schema    // any
	line       *jsonschema.Schema    // of NDJSON, whose own schema only says that it is text
	schemas    map[string]*jsonschema.Schema
	compiler   *jsonschema.Compiler
	shapes     map[string]*shape
	members    []*property // of replies and deliveries
}

// An operation is one method of one path.
type operation struct {
	node
	id, method, path string
	segments         []segment
	parameters       []*documented // path, query and header
	bodyRequired     bool
	body             map[string]*jsonschema.Schema // by media type
	sent             *shape                        // the body of a delivery
	answers          map[int]*answerDocument
	public           bool
	permissions      []string // "" if any key is enough
}

// A segment is a part of a path: literal text, or a parameter.
type segment struct {
	literal   string
	parameter *documented
}

// A documented is a parameter or a header of the document.
type documented struct {
	node
	name, in string
	required bool
	schema   *jsonschema.Schema
	kind     string // tells "array" and "integer" from text
	element  string // the kind of an array's elements
}

// An answerDocument is the documentation of one status.
type answerDocument struct {
	headers map[string]*documented // by canonical name
	content map[string]*jsonschema.Schema
	shapes  map[string]*shape
	codes   []string // of problems
}

// loadContract parses the served document once.
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
	return newContract(recorder.Body.Bytes())
})

// documentURL names the document in the schema compiler.
const documentURL = "https://example.com/openapi.json"

// newContract resolves a document. On an error in it, it panics with the place.
func newContract(source []byte) (c *contract, err error) {
	defer func() {
		if v := recover(); v != nil {
			c, err = nil, fmt.Errorf("openapi.json: %v", v)
		}
	}()
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(source))
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(source)
	if err != nil {
		return nil, err
	}
	c = &contract{
		source: source, doc: doc, root: root, webhooks: map[string]*operation{},
		schemas: map[string]*jsonschema.Schema{}, shapes: map[string]*shape{},
	}
	c.closeAnswers()
	c.compiler = jsonschema.NewCompiler()
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource(documentURL, root); err != nil {
		return nil, err
	}
	top := node{c, "", root}
	for path, item := range top.get("paths").members() {
		for method, n := range item.members() {
			if slices.Contains([]string{"get", "put", "post", "delete", "patch"}, method) {
				c.operations = append(c.operations, newOperation(strings.ToUpper(method), path, item, n))
			}
		}
	}
	for event, item := range top.get("webhooks").members() {
		c.webhooks[event] = newOperation(http.MethodPost, "", item, item.get("post"))
	}
	c.problem, c.line = top.get("x-problem").schema(), top.get("x-line").schema()
	return c, nil
}

func newOperation(method, path string, item, n node) *operation {
	o := &operation{
		node: n, id: n.get("operationId").text(), method: method, path: path,
		body: map[string]*jsonschema.Schema{}, answers: map[int]*answerDocument{},
	}
	for _, list := range []node{item.get("parameters"), n.get("parameters")} {
		for _, p := range list.elements() {
			o.parameters = append(o.parameters, newDocumented(p.get("name").text(), p.get("in").text(), p))
		}
	}
	body := n.get("requestBody")
	o.bodyRequired = body.get("required").v == true
	for mediaType, m := range body.get("content").members() {
		o.body[mediaType] = m.get("schema").schema()
		if path == "" {
			o.sent = n.c.shape(m.get("schema"))
		}
	}
	for status, a := range n.get("responses").members() {
		number, err := strconv.Atoi(status)
		if err != nil && path != "" { // receivers may reply with any status from 200 to 299
			panic(a.at + ": not a status")
		}
		o.answers[number] = newAnswerDocument(a)
	}
	if path != "" {
		for _, text := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
			o.segments = append(o.segments, o.segment(text))
		}
	}
	o.public = len(n.get("security").elements()) == 0
	for _, requirement := range n.get("security").elements() {
		for _, scheme := range requirement.members() {
			for _, scope := range scheme.elements() {
				o.permissions = append(o.permissions, scope.text())
			}
		}
	}
	return o
}

func (o *operation) segment(text string) segment {
	if !strings.HasPrefix(text, "{") {
		return segment{literal: text}
	}
	p := o.parameter("path", strings.Trim(text, "{}"))
	if p == nil {
		panic(o.at + ": " + text + " is not described")
	}
	return segment{parameter: p}
}

// parameter returns a parameter, or nil.
func (o *operation) parameter(in, name string) *documented {
	for _, p := range o.parameters {
		if p.in == in && p.name == name {
			return p
		}
	}
	return nil
}

func newDocumented(name, in string, n node) *documented {
	schema := n.get("schema").follow()
	return &documented{
		node: n, name: name, in: in, required: n.get("required").v == true,
		schema: n.get("schema").schema(), kind: schema.kind(), element: schema.get("items").follow().kind(),
	}
}

func newAnswerDocument(n node) *answerDocument {
	a := &answerDocument{
		headers: map[string]*documented{}, content: map[string]*jsonschema.Schema{}, shapes: map[string]*shape{},
	}
	for name, h := range n.get("headers").members() {
		a.headers[http.CanonicalHeaderKey(name)] = newDocumented(name, "header", h)
	}
	for mediaType, m := range n.get("content").members() {
		a.content[mediaType] = nil
		if schema := m.get("schema"); schema.there() {
			a.content[mediaType] = schema.schema()
			a.shapes[mediaType] = n.c.shape(schema)
			if mediaType == "application/problem+json" {
				a.codes = append(a.codes, schema.codes()...)
			}
		}
	}
	return a
}

// A node is a value in the document, with its place as a JSON Pointer.
type node struct {
	c  *contract
	at string
	v  any
}

func (n node) there() bool { return n.v != nil }

// follow returns the target of a reference, or the node itself.
func (n node) follow() node {
	for {
		m, _ := n.v.(map[string]any)
		ref, ok := m["$ref"].(string)
		if !ok {
			return n
		}
		pointer, ok := strings.CutPrefix(ref, "#/")
		if !ok {
			panic(n.at + ": a reference out of the document: " + ref)
		}
		target := node{n.c, "", n.c.root}
		for _, token := range strings.Split(pointer, "/") {
			token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
			target = target.get(token)
		}
		if !target.there() {
			panic(n.at + ": a reference to nothing: " + ref)
		}
		n = target
	}
}

// escapes writes field names as parts of a JSON pointer (RFC 6901).
var escapes = strings.NewReplacer("~", "~0", "/", "~1")

// get returns the node at a path of field names. It follows references.
func (n node) get(names ...string) node {
	for _, name := range names {
		n = n.follow()
		m, _ := n.v.(map[string]any)
		n = node{n.c, n.at + "/" + escapes.Replace(name), m[name]}
	}
	return n
}

// members yields the fields of an object in the order of their names.
func (n node) members() iter.Seq2[string, node] {
	return func(yield func(string, node) bool) {
		m, _ := n.follow().v.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if !yield(name, n.get(name)) {
				return
			}
		}
	}
}

func (n node) elements() []node {
	n = n.follow()
	list, _ := n.v.([]any)
	nodes := make([]node, len(list))
	for i, v := range list {
		nodes[i] = node{n.c, n.at + "/" + strconv.Itoa(i), v}
	}
	return nodes
}

func (n node) text() string {
	s, _ := n.v.(string)
	return s
}

// schema compiles the node as a schema.
func (n node) schema() *jsonschema.Schema {
	if n.c.schemas[n.at] == nil {
		if !n.there() {
			panic(n.at + ": no schema")
		}
		schema, err := n.c.compiler.Compile(documentURL + "#" + (&url.URL{Fragment: n.at}).EscapedFragment())
		if err != nil {
			panic(fmt.Sprintf("%s: %v", n.at, err))
		}
		n.c.schemas[n.at] = schema
	}
	return n.c.schemas[n.at]
}

// kind returns the type of a schema, or "" if there are several.
func (n node) kind() string { return n.get("type").text() }

// codes returns the codes that the schema of a problem allows, including those of its parts.
func (n node) codes() []string {
	var list []string
	code := n.get("properties", "code")
	if s := code.get("const").text(); s != "" {
		list = append(list, s)
	}
	for _, s := range code.get("enum").elements() {
		list = append(list, s.text())
	}
	for _, keyword := range []string{"allOf", "oneOf", "anyOf"} {
		for _, part := range n.get(keyword).elements() {
			list = append(list, part.codes()...)
		}
	}
	m, _ := n.v.(map[string]any)
	if _, ok := m["$ref"]; ok && len(m) > 1 { // fields beside a reference count too
		for _, s := range (node{n.c, n.at, m["properties"]}).get("code", "enum").elements() {
			list = append(list, s.text())
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
