//go:build long

package httpx_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// value generates a value that matches a schema, and adds its places to g.spots. name is that of the field; set stores
// the value.
func (g *generator) value(schema node, name string, set func(any)) any {
	n := schema.follow()
	own, _ := n.v.(map[string]any)
	at := len(g.spots)
	g.spots = append(g.spots, spot{schema: n, set: set})
	v := g.fitting(n, own, name)
	g.spots[at].value = v
	return v
}

func (g *generator) fitting(n node, own map[string]any, name string) any {
	if v, ok := own["const"]; ok {
		return v
	}
	if list, ok := own["enum"].([]any); ok {
		return pick(g, list...)
	}
	if list := n.get("anyOf").elements(); len(list) > 0 {
		at := len(g.spots) - 1
		v := g.value(pick(g, list...), name, g.spots[at].set)
		g.spots = slices.Delete(g.spots, at+1, at+2) // one place with several schemas
		g.spots[at].schema = n
		return v
	}
	kinds := n.kinds()
	if len(kinds) == 0 {
		return g.anything(3)
	}
	kind := pick(g, kinds...)
	if kind == "null" && g.chance(50) { // less often than the other kinds together
		kind = kinds[0]
	}
	switch kind {
	case "object":
		return g.object(n)
	case "array":
		return g.array(n, name)
	case "string":
		return g.text(n, name)
	case "integer":
		return g.integer(n)
	case "boolean":
		return g.chance(50)
	case "null":
		return nil
	}
	panic(n.at + ": no values of the type " + kind)
}

// kinds returns the allowed types, or none if all are allowed.
func (n node) kinds() (list []string) {
	n = n.follow()
	for _, alternative := range n.get("anyOf").elements() {
		list = append(list, alternative.kinds()...)
	}
	for _, v := range n.get("type").elements() {
		list = append(list, v.text())
	}
	if kind := n.get("type").text(); kind != "" {
		list = append(list, kind)
	}
	return list
}

// number returns a limit, or without if there is none.
func (n node) number(keyword string, without int) int {
	v, ok := n.get(keyword).v.(json.Number)
	if !ok {
		return without
	}
	i, err := strconv.Atoi(v.String())
	if err != nil {
		panic(n.at + ": " + err.Error())
	}
	return i
}

// size returns a length between two limits: often a small one, and the largest one more rarely the larger it is.
func (g *generator) size(low, high int) int {
	switch {
	case g.chance(5):
		return low
	case g.chance(10) && g.IntN(1+high/200) == 0:
		return high
	}
	return low + g.IntN(min(high-low, 12)+1)
}

func (g *generator) object(n node) any {
	m := map[string]any{}
	put := func(name string, schema node) {
		m[name] = nil
		m[name] = g.value(schema, name, func(v any) { m[name] = v })
	}
	required := n.get("required").elements()
	share := pick(g, 10, 50, 90)
	for name, schema := range n.get("properties").members() {
		needed := slices.ContainsFunc(required, func(r node) bool { return r.text() == name })
		if needed || g.chance(share) {
			put(name, schema)
		}
	}
	if more := n.get("additionalProperties"); more.there() && more.v != false {
		for range g.size(0, n.number("maxProperties", 20)) {
			name := g.text(n.get("propertyNames"), "")
			if name == "" || g.chance(30) {
				name = pick(g, "color", "name", "a", "b")
			}
			if _, ok := m[name]; !ok {
				put(name, more)
			}
		}
	}
	// These accept any JSON, so most values would be noise.
	for _, name := range []string{"uuid", "createdAt", "updatedAt"} {
		if _, ok := m[name]; ok && g.chance(50) {
			delete(m, name)
		}
	}
	return m
}

func (g *generator) array(n node, name string) any {
	list := []any{}
	low := n.number("minItems", 0)
	for i := range g.size(low, n.number("maxItems", low+20)) {
		list = append(list, nil)
		list[i] = g.value(n.get("items"), name, func(v any) { list[i] = v })
	}
	return list
}

func (g *generator) integer(n node) any {
	low, high := n.number("minimum", -1<<31), n.number("maximum", 1<<31-1)
	switch g.IntN(4) {
	case 0:
		return low
	case 1:
		return high
	case 2:
		return low + g.IntN(min(high-low, 100)+1)
	}
	return low + g.IntN(high-low+1)
}

// text generates a string.
func (g *generator) text(n node, name string) string {
	pattern, high := n.get("pattern").text(), n.number("maxLength", 5000)
	low := n.number("minLength", 0)
	switch {
	case n.get("format").text() == "date-time":
		return g.timestamp()
	case strings.HasPrefix(pattern, "^[0-9a-f]{8}-"):
		return g.reference(name)
	case name == "email" && g.chance(90):
		return pick(g, "ada@example.com", "ADA@Example.COM", "a+b@c.d", `"odd one"@example.com`, "müller@example.com", strings.Repeat("a", 64)+"@"+strings.Repeat("b", 185)+".com")
	case name == "url" && g.chance(90):
		return pick(g, "http://127.0.0.1:9/", "http://127.0.0.1:9/é?a=b&c=%20", "http://127.1.2.3:9/", "http://127.0.0.1:9/"+strings.Repeat("x", 2027)) + strconv.Itoa(10+g.IntN(60))
	case pattern == "" || pattern == `\S`:
		return g.prose(pattern, low, high)
	}
	for {
		s := rapid.StringMatching(pattern).Example(g.Int())
		if length := utf8.RuneCountInString(s); length >= low && length <= high && !strings.ContainsAny(s, "\x00\n") {
			return s
		}
	}
}

// reference generates the identifier of another record.
func (g *generator) reference(name string) string {
	kind := map[string]string{"campaignUuid": "uuid", "fileUuid": "file_uuid"}[name]
	if id := g.known.one(g, kind); id != "" && g.chance(90) {
		return id
	}
	return nobody
}

// prose generates a string of some length with some unusual characters. It never has NUL, which is refused everywhere.
func (g *generator) prose(pattern string, low, high int) string {
	odd := []string{
		"a", "B", " ", "7", "é", "e\u0301", "😀", "\U0010FFFD", "\u2028", "\u202e", "שלום", "日本", `"`, "\\", "'", "\t", "\n", "\r", "\x7f", "\x01",
		"\ufeff", "\ufffd", "\ufffe", "=1+1", "@", "-", "<script>", "&amp;", "%00", "../", ";", ",", "\u0085", "null", "{}",
	}
	length := g.size(low, high)
	var b strings.Builder
	if pattern != "" {
		b.WriteByte('x')
	}
	plain := g.chance(30)
	for utf8.RuneCountInString(b.String()) < length {
		if plain {
			b.WriteByte(byte('a' + g.IntN(26)))
			continue
		}
		b.WriteString(strings.Repeat(pick(g, odd...), 1+length/50))
	}
	runes := []rune(b.String())
	return string(runes[:length])
}

// timestamp generates an RFC 3339 time within the accepted years.
func (g *generator) timestamp() string {
	t := time.Date(1971+g.IntN(100), 1+time.Month(g.IntN(12)), 1+g.IntN(28), g.IntN(24), g.IntN(60), g.IntN(60), 0, time.UTC)
	s := t.Format("2006-01-02T15:04:05")
	if g.chance(50) {
		s += "." + strings.Repeat(strconv.Itoa(g.IntN(10)), 1+g.IntN(pick(g, 3, 9, 38)))
	}
	return s + pick(g, "Z", "Z", "+02:00", "-11:30", "+23:59", "-00:00")
}

// anything generates any JSON.
func (g *generator) anything(depth int) any {
	switch g.IntN(8 - 2*min(1, 3-depth)) {
	case 0:
		return nil
	case 1:
		return g.chance(50)
	case 2:
		return g.IntN(1000) - 500
	case 3:
		return g.Float64() * 1e9
	case 4, 5:
		return g.prose("", 0, 30)
	case 6:
		return []any{1, "a", nil}
	}
	return map[string]any{"a": g.anything(depth - 1), "b": g.anything(depth - 1)}
}

// addFile adds an upload in one of its two forms. The content is text, since the proxy takes all bodies for text.
func (g *generator) addFile(r *generated) {
	content := g.prose("", 0, 300)
	mediaType := pick(g, "text/plain", "text/plain; charset=utf-8", "application/octet-stream", "image/png", "text/html", "application/vnd.x+zip")
	if g.chance(50) {
		r.header.Set("Content-Type", mediaType)
		r.header.Set("Content-Disposition", pick(g, `attachment; filename="a b.txt"`, `attachment; filename=a; filename*=UTF-8''%e2%82%ac.txt`, "attachment"))
		r.body = []byte(content)
		if g.chance(20) {
			r.header.Set("Content-Digest", pick(g, sha256Digest(content), "md5=:AAAA:, "+sha256Digest(content)))
		}
		return
	}
	g.addForm(r, mediaType, content)
}

func (g *generator) addForm(r *generated, mediaType, content string) {
	r.header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
	file := "Content-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: " + mediaType + "\r\n\r\n" + content
	parts := []string{file}
	if g.chance(50) {
		module := "Content-Disposition: form-data; name=\"module\"\r\n\r\n" +
			g.text(r.operation.get("requestBody", "content", "multipart/form-data", "schema", "properties", "module"), "module")
		parts = pick(g, []string{file, module}, []string{module, file})
	}
	r.body = []byte(formOf(parts...))
}

// marshal encodes JSON without the escapes for HTML.
func marshal(v any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
