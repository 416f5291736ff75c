package httpx_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// An exampleCall is the example request of an operation, as the templates in testdata/samples take it.
type exampleCall struct {
	Method, Pattern            string
	Path                       []*openapi3.Parameter
	Query                      []*openapi3.Parameter // the limit and the first filter
	Body                       json.RawMessage       // nil if there is none
	File                       string                // where the reply goes, if it is a file
	Upload, Paged, Empty, Verb bool                  // Verb: curl wouldn't choose the method by itself
}

// withSamples adds x-codeSamples to the operations that need a key. The ones in Go are regions of the client's tests.
func withSamples(t *testing.T, document []byte) []byte {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(document)
	noError(t, err)
	literal := func(replace ...string) func(v any) (string, error) {
		return func(v any) (string, error) { return literalOf(v, replace) }
	}
	templates := template.Must(template.New("").Funcs(template.FuncMap{
		"base": func() string { return "http://127.0.0.1:8080" }, "replace": strings.ReplaceAll,
		"list": func(v any) []string { return strings.Fields(strings.Trim(fmt.Sprint(v), "[]")) },
		"json": literal(), "ts": literal(`"(\w+)": `, "$1: ", `{(.+)}`, "{ $1 }", `([^,{[])\n`, "$1,\n", `\n`, "\n  "),
		"python": literal(": true", ": True", ": false", ": False", ": null", ": None", `(?m)^(  +)`, "$1$1", `([^,{[])\n`, "$1,\n"),
	}).ParseGlob("testdata/samples/*.tmpl"))
	regions, err := os.ReadFile("client_samples_test.go")
	noError(t, err)
	var raw struct {
		Paths map[string]map[string]json.RawMessage
	}
	decode(t, string(document), &raw)
	for path, item := range raw.Paths {
		for method, text := range item {
			o := doc.Paths.Value(path).Operations()[strings.ToUpper(method)]
			if o == nil || len(*o.Security) == 0 {
				continue
			}
			o.Parameters = append(slices.Clone(doc.Paths.Value(path).Parameters), o.Parameters...)
			call := exampleOf(t, strings.ToUpper(method), path, o, string(text))
			name := fmt.Sprintf(`"operationId":%q`, o.OperationID)
			list := name + `,"x-codeSamples":[`
			for _, s := range [][]string{{"Shell", "curl"}, {"Go", "Go"}, {"TypeScript", "TypeScript"}, {"Python", "Python"}} {
				var b bytes.Buffer
				if s[0] == "Go" {
					fmt.Fprintf(&b, "api, err := client.New(%q, os.Getenv(\"FORMSVC_KEY\"), nil)\n// handle err\n\n%s", "http://127.0.0.1:8080", region(t, string(regions), o.OperationID))
				} else if err := templates.ExecuteTemplate(&b, strings.ToLower(s[1])+".tmpl", call); err != nil {
					t.Fatal(err)
				}
				list += fmt.Sprintf(`{"lang":%q,"label":%q,"source":%s},`, s[0], s[1], wire.AppendString(nil, strings.TrimSpace(b.String())))
			}
			document = bytes.Replace(document, []byte(name), []byte(strings.TrimSuffix(list, ",")+"]"), 1)
		}
	}
	return document
}

// region returns what a Go file has between "// sample NAME" and "// end", outdented.
func region(t *testing.T, file, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?sm)^(\t*)// sample ` + name + `\n(.*?)^\t*// end$`).FindStringSubmatch(file)
	if m == nil {
		t.Fatalf("no sample in Go for %s", name)
	}
	text := regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[2], "")
	return regexp.MustCompile(`(?m)^(\w{2,}), err = api`).ReplaceAllString(text, "$1, err := api") // the test has the variable from before
}

func exampleOf(t *testing.T, method, pattern string, o *openapi3.Operation, text string) *exampleCall {
	t.Helper()
	var raw struct {
		RequestBody struct {
			Content map[string]struct{ Example json.RawMessage }
		}
	}
	decode(t, text, &raw)
	c := &exampleCall{Method: method, Pattern: pattern, Body: raw.RequestBody.Content["application/json"].Example}
	c.Upload = o.RequestBody != nil && o.RequestBody.Value.Content["multipart/form-data"] != nil
	c.Verb = method != "GET" && (method != "POST" || c.Body == nil && !c.Upload)
	filtered := false
	for _, ref := range o.Parameters {
		p := ref.Value
		c.Paged = c.Paged || strings.HasSuffix(ref.Ref, "/Cursor")
		switch filter := p.In == "query" && p.Example != nil && p.Schema.Value.Default == nil && p.Name != "order"; {
		case p.In == "path":
			c.Path = append(c.Path, p)
		case p.Name == "limit" || filter && !filtered:
			c.Query = append(c.Query, p)
			filtered = filtered || filter
		}
	}
	if c.Empty = o.Responses.Status(204) != nil; c.Empty || o.Responses.Status(200) == nil {
		return c
	}
	if content := o.Responses.Status(200).Value.Content; content["*/*"] != nil {
		c.File = "passport.txt"
	} else if content["application/json"] == nil {
		c.File = pattern[strings.LastIndexByte(pattern, '/')+1:]
	}
	return c
}

// literalOf returns a value as JSON, with what is short on one line, and then with replacements that make it another language's.
func literalOf(v any, replace []string) (string, error) {
	raw, isBody := v.(json.RawMessage)
	if !isBody {
		text, err := json.Marshal(v)
		return strings.ReplaceAll(string(text), `","`, `", "`), err
	}
	var b bytes.Buffer
	err := json.Indent(&b, raw, "", "  ")
	text := b.String()
	for _, short := range f(`([[{])\n +([^][{}]{1,60}?)\n +([]}])`, `({)\n +([^\n]{1,60})\n +(})`) {
		text = regexp.MustCompile(short).ReplaceAllStringFunc(text, func(part string) string {
			return regexp.MustCompile(`\n +`).ReplaceAllString(regexp.MustCompile(`,\n +`).ReplaceAllString(part, ", "), "")
		})
	}
	for i := 0; i < len(replace); i += 2 {
		text = regexp.MustCompile(replace[i]).ReplaceAllString(text, replace[i+1])
	}
	return text, err
}

// Every operation that needs a key has an example request in each language.
func TestEveryOperationHasSamples(t *testing.T) {
	want := f("curl", "Go", "TypeScript", "Python")
	for _, r := range httpx.Routes() {
		var labels []string
		samples, _ := theContract(t).operations[r.Method+" "+r.Pattern].Extensions["x-codeSamples"].([]any)
		for _, s := range samples {
			labels = append(labels, s.(map[string]any)["label"].(string)) //nolint:forcetypeassert // a broken document panics
		}
		if !r.Public && !slices.Equal(labels, want) || r.Public && labels != nil {
			t.Errorf("%s has samples in %q", r.Name, labels)
		}
	}
}
