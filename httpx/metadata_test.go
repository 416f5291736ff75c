package httpx_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// withMetadata is the body of a response with this metadata.
func withMetadata(metadata string) string {
	return `{"user":{"email":"ada@example.com"},"responses":{"a":{"value":["1"]}},"metadata":` + metadata + `}`
}

func TestMetadata(t *testing.T) {
	w := newWorld(t, nil)
	list := w.campaign(plainCampaign) + "/responses"
	w.do("POST", list, withMetadata(`null`)).is(201, "").has(`{}`, "metadata")
	made := w.do("POST", list, withMetadata(`{"crm":"1","a/b":"","é":"x\n"}`)).is(201, "").has(`{"crm":"1","a/b":"","é":"x\n"}`, "metadata")
	path := list + "/" + made.text("uuid")
	w.do("PATCH", path, `{"metadata":{"crm":"2","a/b":null,"none":null}}`).is(200, "").has(`{"crm":"2","é":"x\n"}`, "metadata")
	w.do("PATCH", path, `{"metadata":{"crm":"2"}}`).is(200, "")
	writer := as(w.key(w.mine, formsvc.ResponsesWrite))
	w.do("PATCH", path, `{"metadata":{"crm":"3","x":"","y":null}}`, writer).is(200, "").has(`{"crm":"3","x":""}`, "metadata")
	w.do("GET", path, "").is(200, "").has(`{"crm":"3","x":"","é":"x\n"}`, "metadata").has(`{"a":{"value":["1"]}}`, "responses")

	var events []string
	for _, e := range w.do("GET", "/v1/events?event=response.updated", "").is(200, "").at("items").([]any) {
		data := e.(map[string]any)["data"].(map[string]any)
		events = append(events, fmt.Sprint(data["changes"], data["response"].(map[string]any)["metadata"]))
	}
	if want := []string{"[/metadata/a~1b /metadata/crm] map[crm:2 é:x\n]", "[/metadata/crm /metadata/x] map[crm:3 x: é:x\n]"}; !slices.Equal(events, want) {
		t.Errorf("the events are %q, want %q", events, want)
	}
}

func TestMetadataIsChecked(t *testing.T) {
	w := newWorld(t, nil)
	list := w.campaign(plainCampaign) + "/responses"
	names := func(n, size int) string {
		var pairs []string
		for i := range n {
			pairs = append(pairs, fmt.Sprintf(`"%d":"%s"`, i, strings.Repeat("é", size)))
		}
		return "{" + strings.Join(pairs, ",") + "}"
	}
	path := list + "/" + w.do("POST", list, withMetadata(names(50, 2_000))).is(201, "").text("uuid")
	w.do("PATCH", path, `{"metadata":{"50":"one more"}}`).is(422, "validation_failed").faults("/metadata too_many")
	w.do("PATCH", path, `{"metadata":{"50":"another","0":null}}`).is(200, "")
	w.do("PATCH", path, `{"metadata":null}`).is(422, "validation_failed").faults("/metadata required")
	w.do("PATCH", path, `{"metadata":{"a":1}}`).is(400, "invalid_body").faults("/metadata/a invalid_type")
	w.do("POST", list, withMetadata(names(51, 0))).is(422, "validation_failed").faults("/metadata too_many")
	w.do("POST", list, withMetadata(names(2_001, 0))).is(422, "validation_failed").faults("/metadata too_many")
	w.do("POST", list, withMetadata(`{"":"x","a":"`+strings.Repeat("é", 2_001)+`"}`)).is(422, "validation_failed").
		faults("/metadata/ required", "/metadata/a too_long")
	w.do("POST", list, withMetadata(`{"a":null}`)).is(400, "invalid_body").faults("/metadata/a invalid_type")
	w.do("POST", list, withMetadata(`[]`)).is(400, "invalid_body").faults("/metadata invalid_type")
}

func TestMetadataFilter(t *testing.T) {
	onEveryStore(t, func(t *testing.T, w *world) {
		list := w.campaign(plainCampaign) + "/responses"
		for _, metadata := range []string{`{"a":"1","b.c":"it's"}`, `{"a":"1","[\"x]":"$.a"}`, `{"a":"2","é":"a\"b"}`, `{}`} {
			w.do("POST", list, withMetadata(metadata)).is(201, "")
		}
		for query, want := range map[string]int{
			"metadata[a]=1": 2, "metadata%5Ba%5D=1": 2, "metadata[a]=2": 1, "metadata[a]=3": 0, "metadata[A]=1": 0, "metadata[$.a]=1": 0, "metadata[a]=": 4,
			"metadata[a]=1&metadata[b.c]=it's": 1, "metadata[a]=2&metadata[b.c]=it's": 0, "status=pending&metadata[a]=1": 2, "email=ada@example.com&metadata[a]=2": 1,
			"metadata[" + url.QueryEscape(`["x]`) + "]=$.a": 1, "metadata[é]=" + url.QueryEscape(`a"b`): 1, "createdAfter=2020-01-01T00:00:00Z&metadata[a]=1": 2,
			"updatedAfter=2020-01-01T00:00:00Z&metadata[a]=1": 2, "status=pending&status=done&metadata[a]=1&limit=1": 2,
		} {
			equal(t, w.total(list+"?"+query), want, "%s finds %d", query)
			if got := strings.Count(string(w.do("GET", list+".ndjson?"+strings.ReplaceAll(query, "&limit=1", ""), "").is(200, "").body), "\n"); got != want {
				t.Errorf("%s exports %d, want %d", query, got, want)
			}
		}
	})
	w := newWorld(t, nil)
	list := w.campaign(plainCampaign) + "/responses"
	for _, name := range []string{"metadata", "metadata[", "metadata[]", "metadata]", "metadata[a", "metadata[a]b", "status[a]", "Metadata[a]"} {
		w.do("GET", list+"?"+name+"=x", "").is(400, "invalid_parameter").faults(name + " unknown_parameter")
	}
	w.do("GET", list+"?metadata[a]=x&metadata[a]=y", "").is(400, "invalid_parameter").faults("metadata[a] repeated_parameter")
	var many []string
	for i := range 21 {
		many = append(many, fmt.Sprintf("metadata[%d]=x", i))
	}
	w.do("GET", list+"?"+strings.Join(many, "&"), "").is(400, "invalid_parameter").faults("metadata[20] too_many")
	for range 2 {
		w.do("POST", list, withMetadata(`{"a":"1"}`)).is(201, "")
	}
	_, next := w.page(list + "?limit=1&metadata[a]=1")
	w.do("GET", list+"?limit=1&metadata[a]=2&cursor="+next, "").is(400, "invalid_cursor").faults("cursor invalid_cursor")
}

func TestMetadataInTable(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	w.do("POST", campaign+"/responses", withMetadata(`{"crm":"=1","x":""}`)).is(201, "")
	w.do("POST", campaign+"/responses", `{"user":{"email":"ada@example.com"},"responses":{"metadata.crm":{"value":["a","b"]}},"metadata":{"crm":"2"}}`).is(201, "")
	lines := strings.Split(string(w.do("GET", campaign+"/responses.csv?order=asc", "").is(200, "").body), "\r\n")
	for i, want := range []string{",completedAt,a,metadata.crm,metadata.x", ",,1,'=1,", `,,,"a; b; 2",`} {
		if !strings.HasSuffix(lines[i], want) {
			t.Errorf("line %d is %q, want …%q", i, lines[i], want)
		}
	}
	if got := string(w.do("GET", campaign+"/responses.csv?order=asc&column=metadata.crm&column=a", "").is(200, "").body); got != "metadata.crm,a\r\n'=1,1\r\n\"a; b; 2\",\r\n" {
		t.Errorf("chosen columns: %q", got)
	}
}
