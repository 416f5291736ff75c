//go:build long

package httpx_test

import (
	"net/http"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// queryMutations break the query.
func queryMutations() []mutation {
	raw := func(texts ...string) func(*generator, *generated) bool {
		return func(g *generator, r *generated) bool {
			if query := r.query.Encode(); query != "" {
				r.rawQuery = query + "&"
			}
			r.rawQuery += pick(g, texts...)
			return true
		}
	}
	return []mutation{
		{name: "unknown parameter", want: badShape, apply: func(g *generator, r *generated) bool {
			name := pick(g, "zzz", "Limit", "page", "é", "limit[]", "_", strings.Repeat("n", 300))
			r.query.Set(name, "1")
			return true
		}},
		{name: "another operation's parameter", want: badShape, apply: func(g *generator, r *generated) bool {
			other := pick(g, "limit", "status", "state", "event", "module", "email")
			if r.operation.parameter("query", other) != nil {
				return false
			}
			r.query.Set(other, "1")
			return true
		}},
		{name: "repeated parameter", want: badShape, exact: true, apply: func(g *generator, r *generated) bool {
			for _, i := range g.Perm(len(r.operation.parameters)) {
				p := r.operation.parameters[i]
				if values := r.query[p.name]; p.in == "query" && p.kind != "array" && len(values) == 1 {
					r.query.Add(p.name, values[0])
					return true
				}
			}
			return false
		}},
		{name: "wrong parameter", want: badShape, seen: true, apply: func(g *generator, r *generated) bool {
			return g.wrongParameter(r, func(schema node) []string {
				list := []string{"%"}
				if most := schema.number("maxLength", -1); most >= 0 {
					list = []string{strings.Repeat("x", most+1)}
				}
				if schema.kind() == "integer" {
					list = []string{"x", "1.5", "-1", "1,2"}
				}
				if schema.get("enum").there() {
					list = []string{"zzz", "ASC", "asc "}
				}
				if schema.get("format").text() == "date-time" {
					list = []string{"yesterday", "2026-11-21", "2026-11-21T08:30:00 02:00"}
				}
				return list
			})
		}},
		// Prism accepts this: it parses it as a number.
		{name: "number in a JavaScript form", want: badShape, apply: func(g *generator, r *generated) bool {
			if r.operation.parameter("query", "limit") == nil {
				return false
			}
			r.query.Set("limit", pick(g, "0x10", "1 ", " 1", "1e1", "1.0"))
			return true
		}},
		{name: "NUL in a parameter", want: badShape, apply: func(g *generator, r *generated) bool {
			return g.wrongParameter(r, func(node) []string { return []string{"a\x00", "\x00"} })
		}},
		{name: "bad escape", want: badShape, exact: true, apply: raw("limit=%zz", "%", "a=%ff", "%c0%80=1", "order=asc;limit=1", "status=%")},
	}
}

// wrongParameter sets one of the operation's parameters to an invalid value.
func (g *generator) wrongParameter(r *generated, wrong func(schema node) []string) bool {
	for _, i := range g.Perm(len(r.operation.parameters)) {
		p := r.operation.parameters[i]
		if p.in != "query" || p.name == "module" && r.header.Get("Content-Disposition") == "" {
			continue
		}
		schema := p.get("schema").follow()
		if p.kind == "array" {
			schema = schema.get("items").follow()
		}
		r.query.Set(p.name, pick(g, wrong(schema)...))
		return true
	}
	return false
}

// headerMutations damage the headers.
func headerMutations() []mutation {
	when := func(fits func(r *generated) bool, name string, values ...string) func(*generator, *generated) bool {
		return func(g *generator, r *generated) bool {
			if !fits(r) {
				return false
			}
			r.header.Del(name)
			if value := pick(g, values...); value != "" {
				r.header.Set(name, value)
			}
			return true
		}
	}
	private := func(r *generated) bool { return !r.operation.public }
	json := func(r *generated) bool { return len(r.text()) > 0 && r.operation.body["application/json"] != nil }
	sends := func(r *generated) bool { return len(r.text()) > 0 }
	takes := func(name string) func(r *generated) bool {
		return func(r *generated) bool { return r.operation.parameter("header", name) != nil }
	}
	changes := func(r *generated) bool {
		return takes("If-Match")(r) && r.method != http.MethodGet && r.method != http.MethodHead
	}
	blind := func(r *generated) bool { return r.method == http.MethodDelete || r.operation.id == "rotateWebhook" }
	// Failed authentication is limited.
	nobodys, media := []int{http.StatusUnauthorized, http.StatusTooManyRequests}, []int{http.StatusUnsupportedMediaType}
	return []mutation{
		{name: "no key", want: nobodys, seen: true, apply: when(private, "Authorization", "")},
		{name: "bad key", want: nobodys, apply: when(private, "Authorization", "Bearer x", "Bearer formsvc_", "Basic YTpi", "Bearer", "bearer  a b", "Bearer é")},
		{name: "weak key", want: []int{http.StatusForbidden}, apply: func(g *generator, r *generated) bool {
			if len(r.operation.permissions) == 0 || slices.Contains(r.operation.permissions, string(fewPermission)) {
				return false
			}
			r.header.Set("Authorization", "Bearer "+g.known.keys.few)
			return true
		}},
		{name: "media type", want: media, apply: when(json, "Content-Type", "text/plain", "", "application/x-www-form-urlencoded", "application/json5", "text/json", "application/problem+json")},
		{name: "character set", want: media, exact: true, apply: when(json, "Content-Type", "application/json; charset=latin1", "application/json; a=b", "application/json;;", "json")},
		{name: "compressed", want: media, exact: true, apply: when(sends, "Content-Encoding", "gzip", "br", "x")},
		{name: "bad If-Match", want: badShape, apply: when(changes, "If-Match", "1", `"a`, `"a" "b"`, "W/", `"a",*`)},
		{name: "If-None-Match on a change", want: badShape, apply: when(changes, "If-None-Match", "*", `"1"`, "x")},
		{name: "condition on a route without conditions", want: badShape, apply: when(blind, "If-Match", "*", `"1"`, "x")},
		{name: "bad Idempotency-Key", want: badShape, seen: true, apply: when(takes("Idempotency-Key"), "Idempotency-Key", "a b", strings.Repeat("k", 256), "\xe9")},
		{name: "too many keys", want: badShape, exact: true, apply: func(_ *generator, r *generated) bool {
			if !takes("Idempotency-Key")(r) {
				return false
			}
			r.header["Idempotency-Key"] = []string{"a", "b"}
			return true
		}},
		{name: "bad Content-Digest", want: badShape, apply: when(takes("Content-Digest"), "Content-Digest", "sha-256=:AAAA:", "x", "sha-256=abc", sha256Digest("something else"), "sha-256")},
	}
}

// fewPermission is the permission of the weak key.
const fewPermission = formsvc.CampaignsRead

// uploadMutations damage the metadata of a file.
func uploadMutations() []mutation {
	forms := func(name string, want []int, parts ...string) mutation {
		return mutation{name: name, want: want, exact: true, apply: func(_ *generator, r *generated) bool {
			if !strings.HasPrefix(r.header.Get("Content-Type"), "multipart/form-data") {
				return false
			}
			r.body = []byte(formOf(parts...))
			return true
		}}
	}
	raw := func(name string, want []int, disposition ...string) mutation {
		return mutation{name: name, want: want, apply: func(g *generator, r *generated) bool {
			if len(r.header["Content-Disposition"]) == 0 {
				return false
			}
			r.header.Del("Content-Disposition")
			if value := pick(g, disposition...); value != "" {
				r.header.Set("Content-Disposition", value)
			}
			return true
		}}
	}
	file, module := filePart("text"), part("module", "name")
	return []mutation{
		forms("no file", badShape, module),
		forms("another part", badShape, file, part("zzz", "x")),
		forms("a file twice", badShape, file, file),
		forms("a module twice", badShape, module, file, module),
		forms("a long module", badValue, file, part("module", strings.Repeat("é", 201))),
		forms("a part without its name", badShape, file, "X: y\r\n\r\ntext"),
		{name: "incomplete form", want: badShape, exact: true, apply: func(_ *generator, r *generated) bool {
			if !strings.HasPrefix(r.header.Get("Content-Type"), "multipart/form-data") {
				return false
			}
			r.body = r.body[:len(r.body)/2]
			return true
		}},
		{name: "no boundary", want: badShape, exact: true, apply: func(g *generator, r *generated) bool {
			if !strings.HasPrefix(r.header.Get("Content-Type"), "multipart/form-data") {
				return false
			}
			r.header.Set("Content-Type", "multipart/form-data"+pick(g, "", "; boundary=", "; boundary=other"))
			return true
		}},
		raw("no name", []int{http.StatusUnsupportedMediaType}, ""),
		raw("bad Content-Disposition", badShape, "inline; filename=a", "attachment; filename=\"a", "x y", "attachment; filename=a; filename=b"),
	}
}

// pathMutations change the path.
func pathMutations() []mutation {
	nowhere := []int{http.StatusNotFound}
	return []mutation{
		{name: "unknown record", want: nowhere, apply: func(g *generator, r *generated) bool {
			return g.replace(r, func(string, string) string { return nobody })
		}},
		{name: "another account's record", want: nowhere, apply: func(g *generator, r *generated) bool {
			return g.replace(r, func(name, _ string) string {
				list := g.known.others[name]
				if name == "response_uuid" {
					list = g.known.others["response"]
				}
				_, id, found := strings.Cut(list[0], "/")
				if !found {
					id = list[0]
				}
				return id
			})
		}},
		{name: "no identifier", want: nowhere, apply: func(g *generator, r *generated) bool {
			return g.replace(r, func(_, id string) string {
				return pick(g, "x", "G"+id[1:], strings.ReplaceAll(id, "-", ""), id+"0", "urn:uuid:"+id)
			})
		}},
		{name: "bad path", want: nowhere, exact: true, apply: func(g *generator, r *generated) bool {
			if r.path == "/docs" { // with a slash after it, it redirects there
				return false
			}
			r.path = pick(g, "/v2"+r.path, r.path+"/", r.path+"//", r.path+"/x/y", "/"+r.path, strings.Replace(r.path, "/v1/", "/v1/./", 1)+"/", r.path+"/%2e", r.path+"%00")
			return true
		}},
		{name: "another method", want: []int{http.StatusMethodNotAllowed}, exact: true, apply: func(g *generator, r *generated) bool {
			method := pick(g, "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE", "POST")
			for _, o := range g.c.operations {
				if o.path == r.operation.path && o.method == method {
					return false
				}
			}
			r.method = method
			return true
		}},
	}
}

// replace replaces one of the identifiers in the path. deleteWebhook is skipped, since it succeeds for unknown webhooks
// too.
func (g *generator) replace(r *generated, by func(name, id string) string) bool {
	parts := strings.Split(strings.TrimPrefix(r.path, "/"), "/")
	if len(parts) != len(r.operation.segments) || r.operation.id == "deleteWebhook" {
		return false
	}
	for _, i := range g.Perm(len(parts)) {
		if s := r.operation.segments[i]; s.parameter != nil && s.parameter.name != "name" {
			parts[i] = by(s.parameter.name, parts[i])
			r.path = "/" + strings.Join(parts, "/")
			return true
		}
	}
	return false
}
