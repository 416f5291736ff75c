package httpx_test

import (
	"encoding/json"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The document has exactly the fields that the decoders accept: the test tries every operation, every object in its
// body and every name in the source. A refusal lists all errors, so other errors in the body don't matter.
func TestOpenAPIMembers(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	campaign := w.campaign(plainCampaign)
	names := append(memberNames(t), "zzz")
	found := 0
	for _, s := range w.requests(campaign, w.response(campaign)) {
		schema := documentOf(t, s.Route).get("requestBody", "content", "application/json", "schema")
		if !schema.there() {
			continue
		}
		for _, name := range names {
			m := &membersBody{name: name, documented: map[string]bool{}}
			body, err := json.Marshal(m.value(schema, ""))
			if err != nil {
				t.Fatal(err)
			}
			a := w.do(s.Method, s.path, string(body))
			for pointer, documented := range m.documented {
				found++
				if unknown := strings.Contains(a.body, `{"pointer":"`+pointer+`","code":"unknown_member"`); unknown == documented {
					t.Errorf("%s: %s is documented: %t, but %d %s", s.Name, pointer, documented, a.status, a.body)
				}
			}
		}
	}
	if found < len(names) {
		t.Errorf("only %d members were tried", found)
	}
}

// A membersBody has all documented fields, and one more candidate field in each of its objects.
type membersBody struct {
	name       string
	documented map[string]bool // by pointer
}

// value returns a value in the form of the schema, with null for scalars.
func (m *membersBody) value(schema node, pointer string) any {
	schema = schema.follow()
	own, _ := schema.v.(map[string]any)
	switch more := own["additionalProperties"].(type) {
	case map[string]any:
		return map[string]any{"a": m.value(schema.get("additionalProperties"), pointer+"/a")}
	default:
		if own["properties"] == nil && more == nil {
			return m.part(schema, own, pointer)
		}
	}
	object := map[string]any{}
	for name, property := range schema.get("properties").members() {
		object[name] = m.value(property, pointer+"/"+name)
	}
	_, documented := object[m.name]
	m.documented[pointer+"/"+m.name] = documented
	if !documented {
		object[m.name] = nil
	}
	return object
}

// part returns a value of a subschema that doesn't describe objects by itself.
func (m *membersBody) part(schema node, own map[string]any, pointer string) any {
	if own["items"] != nil {
		return []any{m.value(schema.get("items"), pointer+"/0")}
	}
	for _, keyword := range []string{"allOf", "oneOf", "anyOf"} {
		for _, alternative := range schema.get(keyword).elements() {
			if v := m.value(alternative, pointer); v != nil {
				return v
			}
		}
	}
	return nil
}

// memberNames returns the names that the decoders compare with.
func memberNames(t *testing.T) []string {
	t.Helper()
	name := regexp.MustCompile(`^[a-z][a-zA-Z]*$`)
	var names []string
	add := func(expressions ...ast.Expr) {
		for _, e := range expressions {
			if literal, ok := e.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && name.MatchString(text) {
					names = append(names, text)
				}
			}
		}
	}
	for _, file := range sources(t) {
		decodes := false
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				decodes = n.Recv != nil && len(n.Recv.List) == 1 && receiverIs(n.Recv.List[0].Type, "decoder")
			case *ast.CaseClause:
				if decodes {
					add(n.List...)
				}
			case *ast.BinaryExpr:
				if decodes {
					add(n.X, n.Y)
				}
			}
			return true
		})
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) < 20 {
		t.Fatalf("only %q found in the source", names)
	}
	return names
}

func receiverIs(e ast.Expr, name string) bool {
	pointer, ok := e.(*ast.StarExpr)
	return ok && isIdent(pointer.X, name)
}
