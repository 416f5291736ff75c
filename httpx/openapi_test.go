package httpx_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/formsvc/toolkit/httpx"
)

var update = flag.Bool("update", false, "generate openapi.json from openapi.yaml")

// The served document is the YAML file as JSON.
func TestOpenAPIJSON(t *testing.T) {
	source, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(source, &root); err != nil {
		t.Fatal(err)
	}
	var compact, want bytes.Buffer
	writeJSON(t, &compact, root.Content[0])
	if err := json.Indent(&want, compact.Bytes(), "", " "); err != nil {
		t.Fatal(err)
	}
	want.WriteByte('\n')
	if *update {
		if err := os.WriteFile("openapi.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("openapi.json is not openapi.yaml: run go generate ./httpx")
	}
}

// writeJSON writes a YAML value as JSON, with the fields in their order.
func writeJSON(t *testing.T, b *bytes.Buffer, node *yaml.Node) {
	t.Helper()
	switch node.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i, pair := range merged(node) {
			if i > 0 {
				b.WriteByte(',')
			}
			name, err := json.Marshal(pair.name)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(name)
			b.WriteByte(':')
			writeJSON(t, b, pair.value)
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, element := range node.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(t, b, element)
		}
		b.WriteByte(']')
	case yaml.ScalarNode:
		var v any
		if err := node.Decode(&v); err != nil {
			t.Fatal(err)
		}
		encoder := json.NewEncoder(b)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(v); err != nil {
			t.Fatal(err)
		}
	case yaml.AliasNode:
		writeJSON(t, b, node.Alias)
	default:
		t.Fatalf("line %d: what is that?", node.Line)
	}
}

// A member is a field of an object.
type member struct {
	name  string
	value *yaml.Node
}

// merged returns the fields of a mapping, including those that "<<" merges into it. The mapping's own fields replace merged ones:
// JSON readers such as Swagger UI refuse an object with two fields of one name.
func merged(node *yaml.Node) []member {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	var list []member
	for i := 0; i < len(node.Content); i += 2 {
		name, value := node.Content[i].Value, node.Content[i+1]
		if name == "<<" {
			list = append(list, merged(value)...)
			continue
		}
		if j := slices.IndexFunc(list, func(m member) bool { return m.name == name }); j >= 0 {
			list[j].value = value
			continue
		}
		list = append(list, member{name, value})
	}
	return list
}

// Tags tell the specification's operations from extensions.
func TestOpenAPITags(t *testing.T) {
	specified := []string{
		"listCampaigns", "createCampaign", "getCampaign", "replaceCampaign", "listResponses", "createResponse", "getResponse",
		"updateResponse", "uploadFile", "downloadFile", "getDocs", "getDocsFile", "getOpenAPI",
	}
	source, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(source, &doc); err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths {
		for method, text := range item {
			if method == "parameters" {
				continue
			}
			var operation struct {
				OperationID string
				Tags        []string
			}
			if err := json.Unmarshal(text, &operation); err != nil {
				t.Fatal(err)
			}
			extension := !slices.Contains(specified, operation.OperationID)
			if len(operation.Tags) != 1 || strings.HasSuffix(operation.Tags[0], "(extension)") != extension {
				t.Errorf("%s %s is tagged %q", method, path, operation.Tags)
			}
		}
	}
}

// The document names the address that clients are to use.
func TestOpenAPIServers(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	server := func(api http.Handler, target string) string {
		t.Helper()
		recorder := httptest.NewRecorder()
		api.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, target, nil))
		var doc struct{ Servers []struct{ URL string } }
		if err := json.Unmarshal(recorder.Body.Bytes(), &doc); err != nil || len(doc.Servers) != 1 {
			t.Fatalf("%v: %s", err, recorder.Body)
		}
		return doc.Servers[0].URL
	}
	if got := server(w.api, "/openapi.json"); got != "/" {
		t.Errorf("the server is %q", got)
	}
	if got := server(http.StripPrefix("/forms/api", w.api), "/forms/api/openapi.json"); got != "/forms/api" {
		t.Errorf("under a prefix the server is %q", got)
	}
	w.serve(&httpx.Options{BaseURL: `https://forms.example.com/"api"/`})
	if got := server(w.api, "/openapi.json"); got != `https://forms.example.com/"api"` {
		t.Errorf("with a BaseURL the server is %q", got)
	}
}

func TestOpenAPIIsCached(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	noKey := func(r *http.Request) { r.Header.Del("Authorization") }
	tag := w.do("GET", "/openapi.json", "", noKey).is(200, "").header.Get("Etag")
	w.do("GET", "/openapi.json", "", noKey, header("If-None-Match", tag)).is(304, "")
	w.serve(&httpx.Options{BaseURL: "https://forms.example.com"})
	w.do("GET", "/openapi.json", "", noKey, header("If-None-Match", tag)).is(200, "")
}
