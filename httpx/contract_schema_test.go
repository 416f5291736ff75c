package httpx_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// closeAnswers closes the objects in replies and deliveries. The document leaves them open for clients, but the tests
// must find undocumented fields. A schema that defines its additional fields keeps them.
func (c *contract) closeAnswers() {
	top, _ := c.root.(map[string]any)
	for name, schema := range map[string]string{"x-problem": "Problem", "x-line": "Response"} {
		top[name] = map[string]any{"$ref": "#/components/schemas/" + schema}
	}
	walk := (&schemaWalk{look: func(n node, whole bool) {
		own, ok := n.v.(map[string]any)
		if ok && whole && own["additionalProperties"] == nil && own["unevaluatedProperties"] == nil {
			own["unevaluatedProperties"] = false
		}
	}}).walk
	content := func(n node) {
		for _, m := range n.get("content").members() {
			if schema := m.get("schema"); schema.there() {
				walk(schema, true)
			}
		}
	}
	root := node{c, "", c.root}
	walk(root.get("x-problem"), true)
	walk(root.get("x-line"), true)
	for _, item := range root.get("paths").members() {
		for _, operation := range item.members() {
			for _, answer := range operation.get("responses").members() {
				content(answer)
			}
		}
	}
	for _, item := range root.get("webhooks").members() {
		content(item.get("post", "requestBody"))
	}
}

// A schemaWalk visits schemas and all subschemas, each once.
type schemaWalk struct {
	look func(n node, whole bool)
	seen map[string]bool
}

func (w *schemaWalk) walk(n node, whole bool) {
	w.look(n, whole)
	if w.seen[n.at] {
		return
	}
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	w.seen[n.at] = true
	for _, p := range n.subschemas() {
		w.walk(p.node, p.whole)
	}
	if target := n.follow(); target.at != n.at {
		w.walk(target, false) // visited already, with what stands beside the reference
	}
}

// A subschema is a schema within another.
type subschema struct {
	node
	whole bool // whether it describes a value alone, and not together with others
}

// subschemas returns the direct subschemas of a schema. It doesn't follow references.
func (n node) subschemas() []subschema {
	own, _ := n.v.(map[string]any)
	var list []subschema
	for _, keyword := range []string{"properties", "patternProperties", "dependentSchemas", "$defs"} {
		members, _ := own[keyword].(map[string]any)
		for name := range members {
			at := n.at + "/" + keyword + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
			list = append(list, subschema{node{n.c, at, members[name]}, keyword != "dependentSchemas"})
		}
	}
	for _, keyword := range []string{"items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else"} {
		if _, ok := own[keyword].(map[string]any); ok {
			whole := keyword == "items" || keyword == "additionalProperties"
			list = append(list, subschema{node{n.c, n.at + "/" + keyword, own[keyword]}, whole})
		}
	}
	for _, keyword := range []string{"allOf", "oneOf", "anyOf", "prefixItems"} {
		elements, _ := own[keyword].([]any)
		for i, v := range elements {
			list = append(list, subschema{node{n.c, fmt.Sprintf("%s/%s/%d", n.at, keyword, i), v}, keyword == "prefixItems"})
		}
	}
	return list
}

// All objects in requests are closed: the service refuses unknown fields.
func TestOpenAPIRequestsAreClosed(t *testing.T) {
	c := theContract(t)
	w := &schemaWalk{look: func(n node, whole bool) {
		if whole && !n.closed() {
			t.Errorf("%s: an open object", n.at)
		}
	}}
	for _, o := range c.operations {
		for mediaType, m := range o.get("requestBody", "content").members() {
			if schema := m.get("schema"); mediaType == "application/json" || mediaType == "multipart/form-data" {
				w.walk(schema, true)
			}
		}
	}
	if len(w.seen) == 0 {
		t.Error("no schemas of requests")
	}
}

// closed reports whether a schema, if it describes objects, allows only its own fields.
func (n node) closed() bool {
	own, ok := n.v.(map[string]any)
	if !ok {
		return n.v == false
	}
	for _, keyword := range []string{"additionalProperties", "unevaluatedProperties"} {
		if v, ok := own[keyword]; ok && v != true {
			return true
		}
	}
	if target := n.follow(); target.at != n.at && target.closed() && target.objects() {
		return true
	}
	for _, p := range n.subschemas() {
		if strings.HasPrefix(p.at, n.at+"/allOf/") && p.closed() && p.objects() {
			return true
		}
	}
	for _, keyword := range []string{"oneOf", "anyOf"} {
		elements, _ := own[keyword].([]any)
		all := len(elements) > 0
		for i, v := range elements {
			all = all && (node{n.c, fmt.Sprintf("%s/%s/%d", n.at, keyword, i), v}).closed()
		}
		if all {
			return true
		}
	}
	return !n.objects()
}

// objects reports whether the schema allows objects.
func (n node) objects() bool {
	n = n.follow()
	own, _ := n.v.(map[string]any)
	types, _ := own["type"].([]any)
	if own["properties"] != nil || n.kind() == "object" || slices.Contains(types, any("object")) {
		return true
	}
	if own["type"] != nil || own["enum"] != nil || own["const"] != nil {
		return false
	}
	for _, p := range n.subschemas() {
		if !p.whole && p.objects() {
			return true
		}
	}
	return len(own) == 0 // no restriction allows anything
}

// fit checks a value and returns a short error.
func fit(schema *jsonschema.Schema, v any) error {
	var invalid *jsonschema.ValidationError
	if err := schema.Validate(v); err == nil || !errors.As(err, &invalid) {
		return err
	}
	var list, unknown []string
	var collect func(e *jsonschema.ValidationError)
	collect = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			collect(cause)
		}
		if len(e.Causes) > 0 {
			return
		}
		text := e.Error()
		if _, after, ok := strings.Cut(text, "\n- "); ok { // without the location of the schema
			text = after
		}
		if _, ok := e.ErrorKind.(*kind.FalseSchema); ok {
			unknown = append(unknown, text)
		} else {
			list = append(list, text)
		}
	}
	collect(invalid)
	if len(list) == 0 { // fields count as unknown also if their object has another error
		list = unknown
	}
	slices.Sort(list)
	return errors.New(strings.Join(list[:min(len(list), 5)], "; "))
}
