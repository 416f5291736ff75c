package httpx_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v3"

	"github.com/formsvc/toolkit/httpx"
)

// A codeSample is an example request in one language, as x-codeSamples of an operation has it.
type codeSample struct {
	Lang   string `yaml:"lang"`
	Label  string `yaml:"label"`
	Source string `yaml:"source"`
}

// A call is the example request of an operation, as the templates in testdata/samples take it.
type exampleCall struct {
	Method, Pattern, URL, Indent string
	Path, Query                  []exampleValue
	Body                         *yaml.Node
	File                         string // where the reply goes, if it is a file
	Upload, Paged, Empty, Verb   bool   // Verb: curl wouldn't choose the method by itself
}

type exampleValue struct {
	Name  string
	Value *yaml.Node
}

// addSamples adds examples in each language to the operations that need a key. The Go ones are cut out of the client's tests.
func addSamples(t *testing.T, root *yaml.Node) {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	templates := template.Must(template.New("").Funcs(template.FuncMap{
		"base": func() string { return "http://127.0.0.1:8080" }, "curl": language{step: "  "}.literal,
		"ts":     language{step: "  ", pad: " ", comma: ",", bare: true}.literal,
		"python": language{step: "    ", comma: ",", constants: strings.NewReplacer("true", "True", "false", "False", "null", "None")}.literal,
	}).ParseGlob("testdata/samples/*.tmpl"))
	regions, err := os.ReadFile("client/samples_test.go")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, path := range merged(lookUp(root, "paths")) {
		for _, m := range merged(path.value) {
			o := doc.Paths.Value(path.name).Operations()[strings.ToUpper(m.name)]
			if o == nil || len(*o.Security) == 0 {
				continue
			}
			o.Parameters = append(slices.Clone(doc.Paths.Value(path.name).Parameters), o.Parameters...)
			call, samples := exampleOf(t, strings.ToUpper(m.name), path.name, o, m.value), []codeSample{}
			for _, s := range []codeSample{{"Shell", "curl", ""}, {"Go", "Go", ""}, {"TypeScript", "TypeScript", ""}, {"Python", "Python", ""}} {
				var b bytes.Buffer
				if s.Lang == "Go" {
					b.WriteString(region(string(regions), o.OperationID))
				} else if err := templates.ExecuteTemplate(&b, strings.ToLower(s.Label)+".tmpl", call); err != nil {
					t.Fatal(err)
				}
				if s.Source = strings.TrimSpace(b.String()); s.Source != "" {
					samples = append(samples, s)
				}
			}
			var value yaml.Node
			if err := value.Encode(samples); err != nil {
				t.Fatal(err)
			}
			m.value.Content = append(m.value.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "x-codeSamples"}, &value)
		}
	}
}

// Every operation that needs a key has an example request in each language, which names its path.
func TestEveryOperationHasSamples(t *testing.T) {
	want := f("curl", "Go", "TypeScript", "Python")
	if _, err := os.Stat("client/samples_test.go"); err != nil {
		want = f("curl", "TypeScript", "Python")
	}
	for _, r := range httpx.Routes() {
		var labels []string
		samples, _ := theContract(t).operations[r.Method+" "+r.Pattern].Extensions["x-codeSamples"].([]any)
		for _, one := range samples {
			s, _ := one.(map[string]any)
			labels = append(labels, fmt.Sprint(s["label"]))
			if source := fmt.Sprint(s["source"]); s["lang"] != "Go" && !strings.Contains(source, strings.Split(r.Pattern, "{")[0]) {
				t.Errorf("%s: the %s sample is %s", r.Name, s["label"], source)
			}
		}
		if !r.Public && !slices.Equal(labels, want) || r.Public && labels != nil {
			t.Errorf("%s has samples in %q", r.Name, labels)
		}
	}
}

// region returns what a Go file has between "// sample NAME" and "// end", outdented.
func region(file, name string) string {
	m := regexp.MustCompile(`(?sm)^(\t*)// sample ` + name + `\n(.*?)^\t*// end$`).FindStringSubmatch(file)
	if m == nil {
		return ""
	}
	return regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[2], "")
}

// exampleOf returns the example request of an operation. Its query has the limit and the first filter.
func exampleOf(t *testing.T, method, pattern string, o *openapi3.Operation, node *yaml.Node) *exampleCall {
	t.Helper()
	c := &exampleCall{Method: method, Pattern: pattern, URL: pattern, Body: lookUp(node, "requestBody", "content", "application/json", "example")}
	c.Upload = o.RequestBody != nil && o.RequestBody.Value.Content["multipart/form-data"] != nil
	c.Verb = method != "GET" && (method != "POST" || c.Body == nil && !c.Upload)
	separator, filtered := "?", false
	for _, ref := range o.Parameters {
		p, value := ref.Value, new(yaml.Node)
		c.Paged = c.Paged || strings.HasSuffix(ref.Ref, "/Cursor")
		if p.Example == nil {
			continue
		} else if err := value.Encode(p.Example); err != nil {
			t.Fatal(err)
		}
		switch isFilter := p.In == "query" && p.Schema.Value.Default == nil && p.Schema.Ref == ""; {
		case p.In == "path":
			c.Path = append(c.Path, exampleValue{p.Name, value})
			c.URL = strings.Replace(c.URL, "{"+p.Name+"}", value.Value, 1)
		case p.Name == "limit" || isFilter && !filtered:
			c.Query = append(c.Query, exampleValue{p.Name, value})
			for _, one := range append(value.Content, value)[:max(1, len(value.Content))] {
				c.URL += separator + p.Name + "=" + one.Value
				separator = "&"
			}
			filtered = filtered || isFilter
		}
	}
	if c.Paged {
		c.Indent = "  "
	}
	content := o.Responses.Status(200)
	switch {
	case o.Responses.Status(204) != nil:
		c.Empty = true
	case content != nil && content.Value.Content["*/*"] != nil:
		c.File = "passport.txt"
	case content != nil && content.Value.Content["application/json"] == nil:
		c.File = pattern[strings.LastIndexByte(pattern, '/')+1:]
	}
	return c
}

// lookUp returns the value at a path of names, or nil.
func lookUp(node *yaml.Node, names ...string) *yaml.Node {
	for _, name := range names {
		list := merged(node)
		i := slices.IndexFunc(list, func(m member) bool { return m.name == name })
		if i < 0 {
			return nil
		}
		node = list[i].value
	}
	return node
}

// A language says how values are written in it.
type language struct {
	step, pad, comma string // indentation, the space inside of braces, and what follows the last element
	bare             bool   // whether names are unquoted
	constants        *strings.Replacer
}

// literal writes a value: on one line if there is room for it.
func (l language) literal(node *yaml.Node, indent string, room int) (string, error) {
	var v any
	if err := node.Decode(&v); err != nil {
		return "", err
	}
	if node.Kind == yaml.ScalarNode {
		text, err := json.Marshal(v)
		if _, isText := v.(string); !isText && l.constants != nil {
			return l.constants.Replace(string(text)), err
		}
		return string(text), err
	}
	ends, pad, inner, elements := "[]", "", indent+l.step, []member{}
	if node.Kind == yaml.MappingNode {
		ends, pad, elements = "{}", l.pad, merged(node)
	} else {
		for _, element := range node.Content {
			elements = append(elements, member{"", element})
		}
	}
	var flat, tall []string
	for _, e := range elements {
		name := ""
		if e.name != "" {
			if name = e.name + ": "; !l.bare || !regexp.MustCompile(`^\w+$`).MatchString(e.name) {
				name = `"` + e.name + `": `
			}
		}
		one, err := l.literal(e.value, "", 1_000)
		lines, _ := l.literal(e.value, inner, room-len(l.step)-len(name))
		if err != nil {
			return "", err
		}
		flat, tall = append(flat, name+one), append(tall, inner+name+lines)
	}
	if one := ends[:1] + pad + strings.Join(flat, ", ") + pad + ends[1:]; len(one) <= room {
		return one, nil
	}
	return ends[:1] + "\n" + strings.Join(tall, ",\n") + l.comma + "\n" + indent + ends[1:], nil
}
