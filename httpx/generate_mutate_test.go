//go:build long

package httpx_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// A mutation makes a request invalid.
type mutation struct {
	name string
	// apply changes the request, and reports whether it could.
	apply func(g *generator, r *generated) bool
	want  []int // the expected statuses, besides those always possible
	// seen means that the request violates the document's schemas, so that a proxy that knows only these must see it
	// too.
	seen bool
	// exact means that a proxy that parses requests would refuse or repair it.
	exact bool
}

// mutate makes the request invalid in one more way. Of the mutations that fit it prefers rarely used ones.
func (g *generator) mutate(r *generated) {
	exact := !g.passed || g.chance(5)
	order := g.Perm(len(allMutations))
	slices.SortStableFunc(order, func(a, b int) int { return g.used[a] - g.used[b] })
	for _, i := range order {
		m := &allMutations[i]
		if (!m.exact || exact) && m.apply(g, r) {
			if g.used[i]++; !m.seen { // schemas can be violated in more places
				g.used[i] += 3
			}
			r.mutations = append(r.mutations, m)
			r.exact = r.exact || m.exact || g.passed && (unusualNames(r.value) || r.again)
			return
		}
	}
}

// unusualNames reports whether a value has names beyond ASCII. Prism 5.14.2 crashes if it must report one in a header.
func unusualNames(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if strings.ContainsFunc(name, func(c rune) bool { return c > '~' || c < ' ' }) || unusualNames(member) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, unusualNames)
	}
	return false
}

// allMutations lists all mutations.
var allMutations = slices.Concat(valueMutations(), textMutations(), queryMutations(), headerMutations(), uploadMutations(), pathMutations())

var (
	badShape = []int{http.StatusBadRequest}
	badValue = []int{http.StatusBadRequest, http.StatusUnprocessableEntity}
)

// change applies next to one of the matching places in the body.
func change(next func(g *generator, s spot) (any, bool)) func(*generator, *generated) bool {
	return func(g *generator, r *generated) bool {
		if r.value == nil {
			return false
		}
		for _, s := range g.seldom(r.spots) {
			if v, ok := next(g, s); ok {
				g.touched[s.schema.at]++
				s.set(v)
				r.spots = nil // the places may no longer exist
				return true
			}
		}
		return false
	}
}

// seldom sorts the places, those with rarely used schemas first.
func (g *generator) seldom(spots []spot) []spot {
	order := make([]spot, len(spots))
	for i, j := range g.Perm(len(spots)) {
		order[i] = spots[j]
	}
	slices.SortStableFunc(order, func(a, b spot) int { return g.touched[a.schema.at] - g.touched[b.schema.at] })
	return order
}

// valueMutations violate a schema of the body in one place.
func valueMutations() []mutation {
	return []mutation{
		{name: "wrong type", want: badShape, seen: true, apply: change(wrongType)},
		{name: "missing field", want: badValue, seen: true, apply: change(missingMember)},
		{name: "unknown field", want: badShape, seen: true, apply: change(unknownMember)},
		{name: "too long", want: badValue, seen: true, apply: change(tooLong)},
		{name: "too short", want: badValue, seen: true, apply: change(tooShort)},
		{name: "too many", want: badValue, seen: true, apply: change(tooMany)},
		{name: "out of range", want: badValue, seen: true, apply: change(outOfRange)},
		{name: "not in enum", want: badValue, seen: true, apply: change(notInEnum)},
		{name: "against the pattern", want: badValue, seen: true, apply: change(notAsPattern)},
		{name: "no timestamp", want: badShape, seen: true, apply: change(func(g *generator, s spot) (any, bool) {
			return pick(g, "yesterday", "2026-11-21", "2026-11-21T08:30:00", "2026-02-30T00:00:00Z", "2026-11-21T24:30:00Z", "1700000000", ""),
				s.schema.get("format").text() == "date-time"
		})},
		{name: "valid time that is refused", want: badShape, apply: change(func(g *generator, s spot) (any, bool) { // valid by RFC 3339
			return pick(g, "1969-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "2016-12-31T23:59:60Z", "2026-11-21t08:30:00z"),
				s.schema.get("format").text() == "date-time"
		})},
		{name: "NUL", want: badShape, apply: change(func(_ *generator, s spot) (any, bool) {
			text, ok := s.value.(string)
			return text + "\x00", ok && s.schema.get("type").there()
		})},
		{name: "integer in an unusual form", want: badShape, exact: true, apply: change(func(g *generator, s spot) (any, bool) {
			return number(pick(g, "1.0", "1e2", "-0", "9999999999", "1"+strings.Repeat("0", 400), "1e999")), slices.Contains(s.schema.kinds(), "integer")
		})},
	}
}

func wrongType(g *generator, s spot) (any, bool) {
	kinds := s.schema.kinds()
	if len(kinds) == 0 {
		return nil, false
	}
	values := map[string]any{
		"object": map[string]any{}, "array": []any{}, "string": "text", "boolean": true, "number": 1.5, "null": nil,
	}
	for _, kind := range kinds {
		delete(values, kind)
	}
	// Some proxies take a body of null for no body.
	if s.schema.kind() == "object" {
		delete(values, "null")
	}
	if _, ok := values["null"]; ok && g.chance(50) { // many clients send null for optional fields
		return nil, true
	}
	kind := pick(g, slices.Sorted(maps.Keys(values))...)
	return values[kind], true
}

func missingMember(g *generator, s spot) (any, bool) {
	m, ok := s.value.(map[string]any)
	required := s.schema.get("required").elements()
	if !ok || len(required) == 0 {
		return nil, false
	}
	delete(m, pick(g, required...).text())
	return m, true
}

func unknownMember(g *generator, s spot) (any, bool) {
	m, ok := s.value.(map[string]any)
	if !ok || s.schema.get("additionalProperties").v != false {
		return nil, false
	}
	m[pick(g, "zzz", "Title", "", "__proto__", "a/b~c", "😀", "$ref", "user ")] = pick[any](g, nil, 1, "a", []any{})
	return m, true
}

// tooLong also exceeds limits in bytes.
func tooLong(g *generator, s spot) (any, bool) {
	_, ok := s.value.(string)
	most := s.schema.number("maxLength", -1)
	return strings.Repeat(pick(g, "x", "é", "😀"), most+1), ok && most >= 0 && s.schema.get("format").text() == ""
}

func tooShort(_ *generator, s spot) (any, bool) {
	_, ok := s.value.(string)
	least := s.schema.number("minLength", 0)
	return strings.Repeat("x", max(least-1, 0)), ok && least > 0
}

func tooMany(g *generator, s spot) (any, bool) {
	switch v := s.value.(type) {
	case []any:
		most, least := s.schema.number("maxItems", -1), s.schema.number("minItems", 0)
		if least > 0 && g.chance(50) {
			return []any{}, true
		}
		if most < 0 || len(v) == 0 {
			return nil, false
		}
		for len(v) <= most {
			v = append(v, v[0])
		}
		return v, true
	case map[string]any:
		most := s.schema.number("maxProperties", -1)
		if most < 0 || len(v) == 0 {
			return nil, false
		}
		one := v[slices.Sorted(maps.Keys(v))[0]]
		for i := 0; len(v) <= most; i++ {
			v[fmt.Sprint("n", i)] = one
		}
		return v, true
	}
	return nil, false
}

func outOfRange(g *generator, s spot) (any, bool) {
	if !slices.Contains(s.schema.kinds(), "integer") {
		return nil, false
	}
	low, high := s.schema.number("minimum", 0), s.schema.number("maximum", 1<<31-1)
	return pick(g, low-1, high+1, -1<<40, 1<<52), true
}

func notInEnum(g *generator, s spot) (any, bool) {
	return pick(g, "zzz", "OPEN", " open", "response.*"), len(s.schema.get("enum").elements()) > 0
}

func notAsPattern(g *generator, s spot) (any, bool) {
	names := s.schema.get("propertyNames", "pattern").text()
	if m, ok := s.value.(map[string]any); ok && names != "" {
		m[pick(g, "a b", "é", "a:", strings.Repeat("n", 101))] = "x"
		return m, true
	}
	switch pattern := s.schema.get("pattern").text(); {
	case pattern == "":
		return nil, false
	case pattern == `\S`:
		return pick(g, " ", "\t\n", "   "), true
	case strings.HasPrefix(pattern, "^[^"): // of a status
		return pick(g, " ", "a ", "\u00a0a", "a\nb"), true
	}
	return pick(g, "Ä", "A-", " ", "018f0000-0000-7000-8000-00000000000g", "{018f0000-0000-7000-8000-000000000000}"), true
}

// A number is JSON in its written form.
type number string

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) { return []byte(n), nil }

// tooLarge is used rarely, since it is slow.
const tooLarge = "too large"

// textMutations damage the text of the body.
func textMutations() []mutation {
	edit := func(name string, want []int, next func(g *generator, text []byte) []byte) mutation {
		return mutation{name: name, want: want, exact: true, apply: func(g *generator, r *generated) bool {
			if r.value == nil {
				return false
			}
			r.body, r.value = next(g, r.text()), nil
			return true
		}}
	}
	return []mutation{
		edit("truncated", badShape, func(g *generator, text []byte) []byte { return text[:len(text)-1-g.IntN(len(text)-1)] }),
		edit("trailing data", badShape, func(g *generator, text []byte) []byte { return append(text, pick(g, "{}", ",", "]", "x", "\x00")...) }),
		edit("not JSON", badShape, func(g *generator, _ []byte) []byte {
			return []byte(pick(g, "{'title':1}", "{title:1}", `{"title":"x",}`, "title=x", "<title/>", `{"a":NaN}`, `{"a":01}`, "/* */{}", "\ufeff{}", `["x"]`, "null", `"x"`))
		}),
		edit("a member twice", badShape, func(_ *generator, text []byte) []byte {
			return append(text[:len(text)-1], map[bool]string{true: `"a":1,"a":1}`, false: `,"a":1,"a":1}`}[len(text) == 2]...)
		}),
		edit("no UTF-8", badShape, func(g *generator, text []byte) []byte {
			name := pick(g, "\xff", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80")
			return bytes.Replace(text, []byte(`{`), []byte(`{"`+name+`":1,`), 1)
		}),
		edit("half a surrogate pair", badShape, func(g *generator, text []byte) []byte {
			return bytes.Replace(text, []byte(`{`), []byte(`{"`+pick(g, `\ud800`, `\udc00x`, `\ud83d\u0041`)+`":1,`), 1)
		}),
		edit("deep", badShape, func(_ *generator, text []byte) []byte {
			return bytes.Replace(text, []byte(`{`), []byte(`{"uuid":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)+`,`), 1)
		}),
		{name: "no body", want: append(badValue, http.StatusUnsupportedMediaType), exact: true, apply: func(g *generator, r *generated) bool {
			if r.value == nil || !r.operation.bodyRequired {
				return false
			}
			r.body, r.value = []byte(pick(g, "", " \n")), nil
			return true
		}},
		{name: tooLarge, want: []int{http.StatusRequestEntityTooLarge}, exact: true, apply: func(g *generator, r *generated) bool {
			if r.value == nil || g.IntN(500) > 0 {
				return false
			}
			r.body, r.value = append(bytes.Repeat([]byte(" "), 4<<20), r.text()...), nil
			return true
		}},
	}
}
