package httpx_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// absent removes a member from a generated body.
type absent struct{}

// generate returns a value with every documented member. edit gets each value with its JSON Pointer, and may replace it.
func generate(schema *openapi3.Schema, name, at string, edit func(at string, schema *openapi3.Schema, v any) any) any {
	if len(schema.AnyOf) > 0 {
		schema = schema.AnyOf[0].Value
	}
	var v any = "text"
	switch {
	case includes(schema, "object"):
		object, members := map[string]any{}, schema.Properties
		if more := schema.AdditionalProperties.Schema; more != nil {
			members = openapi3.Schemas{"a": more}
		}
		for name, member := range members {
			if v := generate(member.Value, name, at+"/"+name, edit); v != any(absent{}) {
				object[name] = v
			}
		}
		v = object
	case includes(schema, "array"):
		v = []any{generate(schema.Items.Value, name, at+"/0", edit)}
	case includes(schema, "integer"):
		v = 1
	case includes(schema, "boolean"):
		v = true
	case len(schema.Enum) > 0:
		v = schema.Enum[len(schema.Enum)-1]
	case schema.Format == "date-time":
		v = "2026-11-21T08:30:00Z"
	case schema.Format == "uuid":
		v = nobody
	case name == "email":
		v = "ada@example.com"
	case name == "accent":
		v = "#1557a8"
	}
	return edit(at, schema, v)
}

func includes(schema *openapi3.Schema, kind string) bool {
	return schema.Type != nil && schema.Type.Includes(kind)
}

// A mutation makes one value of a body invalid.
type mutation struct {
	what   string
	value  any    // replaces the value
	member string // is added to the object instead
	fault  string // the place and the code of the error; no code: any
}

// mutations returns what is invalid at a place.
func mutations(at string, schema *openapi3.Schema, names []string) (list []mutation) {
	add := func(what string, value any, code string) {
		list = append(list, mutation{what: what, value: value, fault: at + " " + code})
	}
	if includes(schema, "object") {
		if at != "" {
			add("wrong type", []any{}, "invalid_type")
		}
		for _, name := range schema.Required {
			list = append(list, mutation{what: "missing", value: absent{}, fault: at + "/" + name + " required"})
		}
		for _, name := range names {
			if schema.Properties[name] == nil && schema.AdditionalProperties.Schema == nil {
				list = append(list, mutation{what: "unknown", member: name, value: 1, fault: at + "/" + name + " unknown_member"})
			}
		}
		if members := slices.Sorted(maps.Keys(schema.Properties)); len(members) > 0 {
			list = append(list, mutation{what: "duplicate", member: members[0], value: 1, fault: at + "/" + members[0] + " duplicate_member"})
		}
		return list
	}
	switch {
	case includes(schema, "array"):
		add("wrong type", map[string]any{"a": 1}, "invalid_type")
	case schema.Type != nil:
		add("wrong type", []any{1}, "invalid_type")
	}
	if includes(schema, "integer") {
		add("fraction", 1.5, "invalid_integer")
	}
	if schema.MaxLength != nil {
		add("too long", strings.Repeat("é", int(*schema.MaxLength)+1), "")
	}
	if schema.MinLength > 0 {
		add("too short", "", "")
	}
	if schema.Min != nil {
		add("too small", *schema.Min-1, "")
	}
	if schema.Max != nil {
		add("too large", *schema.Max+1, "")
	}
	if len(schema.Enum) > 0 {
		add("not in the list", "zzz", "")
	}
	return list
}

// Every operation refuses a body that is invalid in one place, and names the place; so does the document.
func TestEveryBodyIsValidated(t *testing.T) {
	w, c := newWorld(t, nil), theContract(t)
	names := map[string]bool{"zzz": true}
	for _, o := range c.operations {
		if schema := bodySchema(o); schema != nil {
			generate(schema, "", "", func(_ string, schema *openapi3.Schema, v any) any {
				for name := range schema.Properties {
					names[name] = true
				}
				return v
			})
		}
	}
	all, sent := slices.Sorted(maps.Keys(names)), map[string]int{}
	for _, s := range w.requests(w.pair()) {
		schema := bodySchema(c.operations[s.Method+" "+s.Pattern])
		if schema == nil {
			continue
		}
		at := pointer("", "paths", s.Pattern, strings.ToLower(s.Method), "requestBody", "content", "application/json", "schema")
		places := map[string]*openapi3.Schema{}
		whole := generate(schema, "", "", func(at string, schema *openapi3.Schema, v any) any {
			places[at] = schema
			return v
		})
		if err := c.fits(at, jsonOf(t, whole)); err != nil {
			t.Errorf("%s: the generated body: %v", s.Name, err)
		}
		for place, part := range places {
			for _, m := range mutations(place, part, all) {
				sent[m.what]++
				body := mutated(t, schema, place, m)
				if m.what != "duplicate" && c.fitsJSON(at, []byte(body)) == nil && m.what != "fraction" {
					t.Errorf("%s: %s at %q: the document allows it", s.Name, m.what, m.fault)
				}
				a := w.do(s.Method, s.path, body)
				if a.status != 400 && a.status != 422 || !strings.Contains(a.found(), "|"+m.fault) {
					t.Errorf("%s: %s, want %q: %d %s", s.Name, m.what, m.fault, a.status, a.body)
				}
			}
		}
	}
	for _, what := range []string{"missing", "wrong type", "unknown", "duplicate", "too long", "too short", "too small", "too large", "not in the list", "fraction"} {
		if sent[what] == 0 {
			t.Errorf("no body with %q", what)
		}
	}
}

// found returns the errors of a problem, each as "|place code".
func (a *answer) found() string {
	var b strings.Builder
	for _, e := range a.problem().Errors {
		if e.Pointer != nil {
			fmt.Fprintf(&b, "|%s %s", *e.Pointer, e.Code)
		}
	}
	return b.String()
}

func bodySchema(o *openapi3.Operation) *openapi3.Schema {
	if o.RequestBody == nil || o.RequestBody.Value.Content["application/json"] == nil {
		return nil
	}
	return o.RequestBody.Value.Content["application/json"].Schema.Value
}

// jsonOf returns a value as a JSON reader has it.
func jsonOf(t *testing.T, v any) (out any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	noError(t, err)
	return out
}

// mutated generates a body with one mutation.
func mutated(t *testing.T, schema *openapi3.Schema, place string, m mutation) string {
	t.Helper()
	text := must(json.Marshal(generate(schema, "", "", func(at string, _ *openapi3.Schema, v any) any {
		missing, _, _ := strings.Cut(m.fault, " ")
		switch object, _ := v.(map[string]any); {
		case m.what == "missing" && at == missing:
			return absent{}
		case m.what == "missing" || at != place:
			return v
		case m.what == "duplicate": // sorted before other names
			object["DUPLICATE"] = object[m.member]
			return object
		case m.member != "":
			object[m.member] = m.value
			return object
		}
		return m.value
	})))
	return strings.Replace(string(text), `"DUPLICATE"`, `"`+m.member+`"`, 1)
}

// Every operation refuses malformed bodies, other media types and compression, before it looks for any record.
func TestEveryBodyMustBeWellFormed(t *testing.T) {
	w, c := newWorld(t, nil), theContract(t)
	for _, s := range w.requests(w.pair()) {
		o := c.operations[s.Method+" "+s.Pattern]
		if bodySchema(o) == nil {
			continue
		}
		for body, code := range map[string]string{
			`{} {}`: "trailing_data", "\uFEFF{}": "byte_order_mark", "{\"\xff\":1}": "invalid_utf8", `{"\ud800":1}`: "lone_surrogate",
			"{\"\x00\":1}": "invalid_body", "[]": "not_an_object", "null": "not_an_object", "{": "malformed_json", " ": "empty_body",
		} {
			w.do(s.Method, s.path, body).is(400, code)
		}
		if o.RequestBody.Value.Required {
			w.do(s.Method, s.path, "").is(400, "empty_body")
		}
		w.do(s.Method, s.path, "{}", header("Content-Type", "text/plain")).is(415, "unsupported_media_type")
		w.do(s.Method, s.path, "{}", header("Content-Type")).is(415, "unsupported_media_type")
		w.do(s.Method, s.path, "{}", header("Content-Encoding", "gzip")).is(415, "unsupported_content_encoding")
	}
}

// Every operation accepts exactly the documented query parameters. One with an empty value counts as absent.
func TestEveryQueryIsValidated(t *testing.T) {
	w, c := newWorld(t, nil), theContract(t)
	names := map[string]bool{"zzz": true}
	for _, o := range c.operations {
		for _, p := range o.Parameters {
			names[p.Value.Name] = names[p.Value.Name] || p.Value.In == "query"
		}
	}
	for _, s := range w.requests(w.pair()) {
		o := c.operations[s.Method+" "+s.Pattern]
		ask := func(query string) *answer { return w.do(s.Method, s.path+"?"+query, s.body) }
		if s.Method != http.MethodDelete {
			ask("").is(s.status, "")
		}
		for name, inQuery := range names {
			p := o.Parameters.GetByInAndName("query", name)
			switch {
			case p == nil && inQuery:
				ask(name+"=1").is(400, "invalid_parameter").faults(name + " unknown_parameter")
			case p != nil:
				w.parameter(p, ask, s)
			}
		}
	}
}

// parameter checks valid and invalid values of a query parameter.
func (w *world) parameter(p *openapi3.Parameter, ask func(query string) *answer, s sample) {
	w.tb.Helper()
	name, schema, array := p.Name, p.Schema.Value, false
	if p.Style == openapi3.SerializationDeepObject {
		name, schema = name+"[a]", schema.AdditionalProperties.Schema.Value
	}
	if includes(schema, "array") {
		schema, array = schema.Items.Value, true
	}
	if s.Method == http.MethodGet {
		if plain, empty := ask(""), ask(name+"="); empty.is(200, "").body != plain.body {
			empty.errorf("?%s=: %s, want %s", name, empty.body, plain.body)
		}
		if name != "cursor" {
			example, _ := generate(schema, name, "", func(_ string, _ *openapi3.Schema, v any) any { return v }).(string)
			if includes(schema, "integer") {
				example = "1"
			}
			ask(name+"="+url.QueryEscape(example)).is(200, "")
			if !array {
				ask(name+"="+example+"&"+name+"="+example).is(400, "invalid_parameter").faults(name + " repeated_parameter")
			}
		}
	}
	bad := []string{"%00", "%zz", "%ff"}
	if schema.MaxLength != nil {
		bad = append(bad, strings.Repeat("x", int(*schema.MaxLength)+1))
	}
	if includes(schema, "integer") {
		bad = append(bad, "x", "1.5", "-1", "0x1", "+1")
	}
	if len(schema.Enum) > 0 || schema.Format != "" {
		bad = append(bad, "zzz")
	}
	for _, value := range bad {
		if errors := ask(name+"="+value).is(400, "").problem().Errors; len(errors) != 1 || errors[0].Parameter == nil || *errors[0].Parameter != name {
			w.tb.Errorf("%s?%s=%.20s: errors %v", s.Name, name, value, errors)
		}
	}
}
