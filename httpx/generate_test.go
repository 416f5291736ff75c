//go:build long

package httpx_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A generator generates requests from the OpenAPI document: valid ones, and invalid ones by mutation. The same seed
// generates the same requests while the replies, from which it takes identifiers, stay the same.
type generator struct {
	*rand.Rand
	seed   uint64
	c      *contract
	known  *records
	spots  []spot // of the body being generated
	passed bool   // whether a proxy parses the requests

	used      []int          // how often each mutation was used
	touched   map[string]int // how often each schema was used, by its location
	stretched map[string]int
}

func newGenerator(c *contract, known *records, seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 0)), seed: seed, c: c, known: known,
		used: make([]int, len(allMutations)), touched: map[string]int{}, stretched: map[string]int{},
	}
}

// A generated is a generated request.
type generated struct {
	operation *operation
	method    string
	path      string
	query     url.Values
	rawQuery  string // replaces query, unless ""
	header    http.Header
	value     any // the JSON value; nil: only body is set
	body      []byte
	spots     []spot
	mutations []*mutation
	exact     bool // made of bytes that a proxy must not change
	again     bool // sent before
}

// A spot is a place in a body with the schema of its value.
type spot struct {
	schema node
	value  any
	set    func(any)
}

func (r *generated) String() string {
	names := []string{}
	for _, m := range r.mutations {
		names = append(names, m.name)
	}
	return fmt.Sprintf("%s %q: %s %s %v %.2000s", r.operation.id, names, r.method, r.target(), r.header, r.text())
}

func (r *generated) target() string {
	query := r.rawQuery
	if query == "" {
		query = r.query.Encode()
	}
	if query == "" {
		return r.path
	}
	return r.path + "?" + query
}

// text returns the body.
func (r *generated) text() []byte {
	if r.value != nil {
		return marshal(r.value)
	}
	return r.body
}

// has reports whether the request has a header or a parameter.
func (r *generated) has(name string) bool {
	return len(r.header[name]) > 0 || len(r.query[name]) > 0
}

// chance returns true in that percentage of cases.
func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

// next generates a request; every other one is mutated.
func (g *generator) next() *generated {
	r := g.valid(pick(g, g.c.operations...))
	for n := pick(g, 0, 0, 0, 1, 1, 2); n > 0; n-- {
		g.mutate(r)
	}
	return r
}

// valid generates a request that matches the document.
func (g *generator) valid(o *operation) *generated {
	if again := g.known.again(g, o); again != nil {
		return again
	}
	r := &generated{
		operation: o, method: o.method, path: g.path(o), query: url.Values{}, header: http.Header{},
	}
	if o.method == http.MethodGet && !g.passed && g.chance(4) {
		r.method = http.MethodHead
	}
	if !o.public {
		r.header.Set("Authorization", "Bearer "+g.known.keys.mine)
	}
	g.addBody(r)
	for _, p := range o.parameters {
		if p.in == "header" && g.chance(30) {
			g.addHeader(r, p)
		}
		if p.in == "query" && g.chance(30) {
			g.addParameter(r, p)
		}
	}
	g.goOn(r)
	if o.parameter("header", "Idempotency-Key") != nil && r.has("Idempotency-Key") {
		g.known.sent(g, r)
	}
	return r
}

// path fills in identifiers of existing records.
func (g *generator) path(o *operation) string {
	path := o.path
	if o.parameter("path", "response_uuid") != nil {
		kind := "response"
		if o.id == "deleteResponse" { // the others need what they know
			kind = "doomed"
		}
		campaign, response, _ := strings.Cut(g.known.one(g, kind), "/")
		return strings.NewReplacer("{uuid}", campaign, "{response_uuid}", response).Replace(path)
	}
	for _, s := range o.segments {
		if s.parameter == nil {
			continue
		}
		name, value := s.parameter.name, ""
		switch {
		case name == "name":
			value = pick(g, "docs.css", "swagger-ui.css", "none.js")
		case name == "uuid" && o.method != http.MethodPut && g.chance(80):
			value = g.known.one(g, "form")
		case o.id == "deleteWebhook" && g.chance(50):
			value = nobody
		case name == "webhook_uuid" && o.id != "deleteWebhook" && g.chance(40):
			value = g.known.one(g, "kept")
		default:
			value = g.known.one(g, name)
		}
		path = strings.Replace(path, "{"+name+"}", value, 1)
	}
	return path
}

// addParameter adds a parameter of the query.
func (g *generator) addParameter(r *generated, p *documented) {
	switch name := p.name; {
	case name == "module" && r.header.Get("Content-Disposition") == "", name == "offset" && r.has("cursor"):
	case name == "cursor":
		if r.operation.id == "exportResponsesAsCsv" || r.operation.id == "exportResponsesAsNdjson" {
			_, response, _ := strings.Cut(g.known.one(g, "response"), "/")
			r.query.Set(name, response)
		}
	case p.kind == "array":
		for range 1 + g.IntN(3) {
			r.query.Add(name, g.asText(p.get("schema", "items"), name))
		}
	default:
		r.query.Set(name, g.asText(p.get("schema"), name))
	}
}

func (g *generator) asText(schema node, name string) string {
	v := g.value(schema, name, func(any) {})
	g.spots = nil
	if text, ok := v.(string); ok {
		return text
	}
	return string(marshal(v))
}

// goOn sometimes continues a list by its cursor.
func (g *generator) goOn(r *generated) {
	if r.operation.parameter("query", "cursor") == nil || !g.chance(15) {
		return
	}
	if target := g.known.one(g, "cursor "+r.operation.id); target != "" {
		path, query, _ := strings.Cut(target, "?")
		r.path = path
		r.query, _ = url.ParseQuery(query)
	}
}

// addHeader adds a header. In the document most are plain text; RFCs define their values.
func (g *generator) addHeader(r *generated, p *documented) {
	tags := []string{"*", `"abc"`, `W/"1"`, `"1", "2",W/"3"`, `"1-0"`, g.known.one(g, "tag")}
	day := time.Date(2026, 1+time.Month(g.IntN(24)), 1, 0, 0, 0, 0, time.UTC).Format(http.TimeFormat)
	values := map[string][]string{
		"Idempotency-Key":     {g.asText(p.get("schema"), p.name), g.asText(p.get("schema"), p.name), g.known.one(g, "key")},
		"If-None-Match":       tags,
		"If-Match":            tags,
		"If-Range":            {tags[1], tags[5], day},
		"If-Modified-Since":   {day, "yesterday"},
		"If-Unmodified-Since": {day, "yesterday"},
		"Range":               {"bytes=0-", "bytes=0-0", "bytes=-3", "bytes=1-2,0-0", "bytes=5000-", "bytes=9-1", "lines=1-2", "bytes=0-0,1-1,2-2"},
		"Content-Disposition": nil, // set by addBody
		"Content-Digest":      nil,
	}
	list, ok := values[p.name]
	if !ok {
		panic("no values for the header " + p.name)
	}
	if len(list) > 0 {
		r.header.Set(p.name, pick(g, list...))
	}
	if r.header.Get(p.name) == "" {
		r.header.Del(p.name)
	}
}

// addBody adds the body and the headers that describe it.
func (g *generator) addBody(r *generated) {
	content := r.operation.get("requestBody", "content")
	if !content.there() || !r.operation.bodyRequired && g.chance(40) {
		return
	}
	if r.operation.body["multipart/form-data"] != nil {
		g.addFile(r)
		return
	}
	r.header.Set("Content-Type", pick(g, "application/json", "application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8"))
	r.value = g.value(content.get("application/json", "schema"), "", func(v any) { r.value = v })
	r.spots, g.spots = g.spots, nil
	g.stretch(r)
}

// stretch often gives one value in the body its largest or smallest size.
func (g *generator) stretch(r *generated) {
	if g.chance(60) {
		return
	}
	slices.SortStableFunc(r.spots, func(a, b spot) int { return g.stretched[a.schema.at] - g.stretched[b.schema.at] })
	for i, s := range r.spots {
		var v any
		switch s.value.(type) {
		case string:
			most := s.schema.number("maxLength", -1)
			if pattern := s.schema.get("pattern").text(); most < 0 || pattern != "" && pattern != `\S` || s.schema.get("format").there() {
				continue
			}
			v = strings.Repeat(pick(g, "x", "😀"), pick(g, most, most, s.schema.number("minLength", 0)))
		case int:
			v = pick(g, s.schema.number("minimum", 0), s.schema.number("maximum", 1<<31-1))
		default:
			continue
		}
		g.stretched[s.schema.at]++
		s.set(v)
		r.spots[i].value = v
		return
	}
}

// Keys has the keys of the two accounts, and one with few permissions.
type keys struct{ mine, other, few string }

// A records has what is known of the service's records: identifiers by the name of their parameter, and more.
type records struct {
	mu     sync.Mutex
	keys   keys
	list   map[string][]string
	others map[string][]string // of the other account
	posts  map[string][]*generated
}

// mostKnown is how many of a kind are remembered.
const mostKnown = 40

func newRecords(k keys) *records {
	return &records{keys: k, list: map[string][]string{}, others: map[string][]string{}, posts: map[string][]*generated{}}
}

// one returns a known value, or "".
func (x *records) one(g *generator, kind string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if list := x.list[kind]; len(list) > 0 {
		return pick(g, list...)
	}
	return ""
}

// learn adds a value. Beyond the limit it drops the oldest half.
func (x *records) learn(kind, value string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.list[kind]) == mostKnown {
		x.list[kind] = slices.Clone(x.list[kind][mostKnown/2:])
	}
	if value != "" && !slices.Contains(x.list[kind], value) {
		x.list[kind] = append(x.list[kind], value)
	}
}

// count returns how many values of a kind are known.
func (x *records) count(kind string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.list[kind])
}

// forget removes a value, but never the last of its kind.
func (x *records) forget(kind, value string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := slices.Index(x.list[kind], value); i >= 0 && len(x.list[kind]) > 1 {
		x.list[kind] = slices.Delete(slices.Clone(x.list[kind]), i, i+1)
	}
}

// sent stores a POST with a key for sending it again.
func (x *records) sent(g *generator, r *generated) {
	x.learn("key", r.header.Get("Idempotency-Key"))
	x.mu.Lock()
	defer x.mu.Unlock()
	same := &generated{
		operation: r.operation, method: r.method, path: r.path, query: maps.Clone(r.query), header: r.header.Clone(), body: r.text(),
	}
	if posts := x.posts[r.operation.id]; len(posts) == 5 {
		posts[g.IntN(5)] = same
		return
	}
	x.posts[r.operation.id] = append(x.posts[r.operation.id], same)
}

// again sometimes returns an earlier POST to send it again.
func (x *records) again(g *generator, o *operation) *generated {
	x.mu.Lock()
	defer x.mu.Unlock()
	posts := x.posts[o.id]
	if len(posts) == 0 || !g.chance(10) {
		return nil
	}
	same := *pick(g, posts...)
	same.again = true
	same.query, same.header, same.body = maps.Clone(same.query), same.header.Clone(), slices.Clone(same.body)
	return &same
}

// learnFrom takes identifiers, ETags and cursors from a reply.
func (x *records) learnFrom(r *generated, a *answer) {
	if a.status == http.StatusNotFound && len(r.mutations) == 0 { // the webhook is deleted, or the delivery with it
		for _, segment := range strings.Split(r.path, "/") {
			x.forget("webhook_uuid", segment)
			x.forget("delivery_uuid", segment)
		}
	}
	if a.status >= http.StatusBadRequest || r.method == http.MethodHead {
		return
	}
	if r.method != http.MethodGet || a.status == http.StatusOK {
		x.learn("tag", a.header.Get("ETag"))
	}
	made := map[string]string{
		"createCampaign": "uuid", "createResponse": "response", "uploadFile": "file_uuid", "createWebhook": "webhook_uuid", "testWebhook": "delivery_uuid",
	}[r.operation.id]
	switch {
	case r.operation.id == "deleteResponse" && a.status == http.StatusNoContent:
		parts := strings.Split(r.path, "/")
		x.forget("doomed", parts[3]+"/"+parts[5])
	case r.operation.id == "deleteWebhook":
		x.forget("webhook_uuid", r.path[strings.LastIndexByte(r.path, '/')+1:])
	case made == "response":
		if x.count("doomed") < 10 {
			made = "doomed"
		}
		x.learn(made, a.text("campaignUuid")+"/"+a.text("uuid"))
	case made != "":
		x.learn(made, a.text("uuid"))
	case strings.HasPrefix(r.operation.id, "list"):
		x.learnFromList(r, a)
	}
}

func (x *records) learnFromList(r *generated, a *answer) {
	page := a.object()
	if items, ok := page["items"].([]any); ok && r.operation.id == "listDeliveries" && len(items) > 0 {
		first, _ := items[0].(map[string]any)
		x.learn("delivery_uuid", fmt.Sprint(first["uuid"]))
	}
	if cursor, ok := page["nextCursor"].(string); ok {
		query := maps.Clone(r.query)
		query.Del("offset")
		query.Set("cursor", cursor)
		x.learn("cursor "+r.operation.id, r.path+"?"+query.Encode())
	}
}

// begin creates the first records of both accounts over the API.
func (x *records) begin(send func(key, method, path, contentType, body string) *answer) {
	for round, key := range []string{x.keys.other, x.keys.mine} {
		post := func(path, body string) string {
			contentType := "application/json"
			if strings.HasSuffix(path, "/files") {
				contentType = "text/plain"
			}
			return send(key, http.MethodPost, path, contentType, body).is(http.StatusCreated, "").text("uuid")
		}
		form, other := post("/v1/campaigns", plainCampaign), post("/v1/campaigns", fullCampaign)
		response := post("/v1/campaigns/"+form+"/responses", plainResponse)
		webhook := func(name string) string {
			return post("/v1/webhooks", `{"url":"http://127.0.0.1:9/`+name+strconv.Itoa(round)+`","events":["file.uploaded"]}`)
		}
		hook := webhook("kept") // never deleted, so that requests about a webhook can succeed
		made := map[string][]string{
			"uuid": {other}, "form": {form, post("/v1/campaigns", plainCampaign)}, "response": {form + "/" + response},
			"doomed":    {form + "/" + post("/v1/campaigns/"+form+"/responses", plainResponse)},
			"file_uuid": {post("/v1/campaigns/"+form+"/responses/"+response+"/files", "text of a file")},
			"kept":      {hook}, "webhook_uuid": {webhook("another")}, "delivery_uuid": {post("/v1/webhooks/"+hook+"/test", "")},
		}
		if key == x.keys.other {
			x.others = made
		} else {
			x.list = made
		}
	}
}
