package httpx_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// A feed is a reply of GET /v1/events.
type feed struct {
	Items      []json.RawMessage `json:"items"`
	Limit      int               `json:"limit"`
	NextCursor *string           `json:"nextCursor"`
	More       *bool             `json:"more"`
}

func (w *world) feed(query string) feed {
	w.tb.Helper()
	a := w.do("GET", "/v1/events?"+query, "").is(200, "")
	var f feed
	decoder := json.NewDecoder(strings.NewReader(a.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil || f.NextCursor == nil || f.More == nil || f.Items == nil {
		w.tb.Fatalf("%v: %s", err, a.body)
	}
	return f
}

// follow reads the feed to its end, as README.md describes.
func (w *world) follow(query, cursor string) (items []string, next string) {
	w.tb.Helper()
	for range 1000 {
		target := query
		if cursor != "" {
			target += "&cursor=" + url.QueryEscape(cursor)
		}
		f := w.feed(target)
		for _, item := range f.Items {
			items = append(items, string(item))
		}
		if cursor = *f.NextCursor; !*f.More {
			return items, cursor
		}
	}
	w.tb.Fatal("no end")
	return nil, ""
}

// sent returns the payloads that the webhook got, by event.
func (w *world) sent() map[string]string {
	w.tb.Helper()
	var ids []string
	for _, c := range w.claim() {
		ids = append(ids, c.EventID)
	}
	payloads := must(w.queue().Payloads(w.tb.Context(), ids))
	sent := map[string]string{}
	for id, payload := range payloads {
		sent[id] = string(payload.Body)
	}
	return sent
}

// The feed has the payloads that webhooks get, byte for byte and in order.
func TestEventsAreWhatWebhooksGet(t *testing.T) {
	w := newWorld(t, nil)
	w.webhook(`{"url":"https://example.com","events":["response.created","response.updated","response.status_changed","response.completed"]}`)
	campaign := w.campaign(`{"title":"<Survey> & \"more\" é"}`)
	for range 3 {
		path := w.response(campaign)
		w.do("PATCH", path, `{"status":"completed","user":{"lastName":"Byron"}}`).is(200, "")
	}
	items, _ := w.follow("limit=5", "")
	sent := w.sent()
	if len(items) != 12 || len(sent) != 12 {
		t.Fatalf("%d events, %d sent, want 12", len(items), len(sent))
	}
	for i, item := range items {
		e := must(webhook.ParseEvent([]byte(item)))
		equal(t, sent[e.ID], item, "shown %s\n sent %s", item)
		if want := []webhook.EventType{"response.created", "response.updated", "response.status_changed", "response.completed"}[i%4]; e.Type != want {
			t.Errorf("event %d is %s, want %s", i, e.Type, want)
		}
	}
}

// A key that may not read files learns nothing of them from the feed, as from their own routes.
func TestEventsOfFilesNeedTheirPermission(t *testing.T) {
	w := newWorld(t, nil)
	response := w.response(w.campaign(plainCampaign))
	w.do("POST", response+"/files", "{}").is(201, "")
	w.do("PATCH", response, `{"status":"completed"}`).is(200, "")
	few, all := as(w.key(w.mine, formsvc.ResponsesRead)), as(w.key(w.mine, formsvc.ResponsesRead, formsvc.FilesRead))
	for query, want := range map[string][2]int{ // without and with the permission
		"":                        {3, 4},
		"?order=desc":             {3, 4},
		"?event=response.created": {1, 1},
	} {
		for i, key := range []func(*http.Request){few, all} {
			a := w.do("GET", "/v1/events"+query, "", key).is(200, "")
			items, _ := a.at("items").([]any)
			if n := len(items); n != want[i] || i == 0 && strings.Contains(a.body, "sha256") {
				a.errorf("%d events, want %d, and nothing of the file without files:read", n, want[i])
			}
		}
	}
	w.do("GET", "/v1/events?event=response.created&event=file.uploaded&order=desc", "", few).is(403, "permission_denied").
		has(`"files:read"`, "permission")
}

// A reader that goes on after its cursor misses no event and gets none twice.
func TestReadingEvents(t *testing.T) {
	w := newWorld(t, nil)
	empty := w.feed("")
	if len(empty.Items) != 0 || *empty.NextCursor == "" || *empty.More || empty.Limit != 50 {
		t.Errorf("no events: %+v", empty)
	}
	w.response(w.campaign(plainCampaign, as(w.other.key)), as(w.other.key))
	campaign := w.campaign(plainCampaign)
	var made, seen []string
	cursor := *empty.NextCursor
	for round := range 5 {
		for range round * 2 {
			made = append(made, w.response(campaign))
		}
		var items []string
		items, cursor = w.follow(fmt.Sprintf("limit=%d", round+1), cursor)
		for _, item := range items {
			e := must(webhook.ParseEvent([]byte(item)))
			seen = append(seen, campaign+"/responses/"+e.Data.Response.UUID)
		}
		if !slices.Equal(seen, made) {
			t.Fatalf("seen %v, want %v", seen, made)
		}
	}
	if again := w.feed("cursor=" + cursor); len(again.Items) != 0 || *again.More || *again.NextCursor == "" {
		t.Errorf("at the end: %+v", again)
	}
	if got := w.feed("limit=5000"); len(got.Items) != len(made) || *got.More || got.Limit != 1000 {
		t.Errorf("limit=5000: %+v", got)
	}
}

// The feed can be filtered, and its end read in reverse. A cursor is valid with any filter.
func TestFilterOfEvents(t *testing.T) {
	w := newWorld(t, nil)
	first, second := w.campaign(plainCampaign), w.campaign(plainCampaign)
	for range 3 {
		for _, campaign := range []string{first, second} {
			w.do("PATCH", w.response(campaign), `{"status":"completed"}`).is(200, "")
		}
	}
	of := "campaignUuid=" + second[strings.LastIndexByte(second, '/')+1:]
	for query, want := range map[string]int{
		"": 18, "event=response.completed&event=response.created&event=response.created": 12, "event=file.uploaded": 0, of + "&event=response.completed": 3,
	} {
		items, _ := w.follow(query+"&limit=4", "")
		if again, _ := w.follow(query+"&order=asc", ""); len(items) != want || !slices.Equal(again, items) {
			t.Errorf("%s: %d events, want %d; with order=asc %d", query, len(items), want, len(again))
		}
		slices.Reverse(items)
		for _, limit := range []int{2, 100} {
			a := w.do("GET", fmt.Sprintf("/v1/events?order=desc&limit=%d&%s", limit, query), "").is(200, "")
			want := `"items":[` + strings.Join(items[:min(limit, len(items))], ",") + `]`
			if strings.Contains(a.body, "nextCursor") || !strings.Contains(a.body, want) {
				a.errorf("%s, limit %d: %s, want %s and no cursor", query, limit, a.body, want)
			}
		}
	}
	if items, _ := w.follow("event=response.completed", *w.feed("limit=1").NextCursor); len(items) != 6 {
		t.Errorf("after the first event %d are completions, want 6", len(items))
	}
	w.do("GET", "/v1/events?order=desc&limit=101", "").is(200, "").has("100", "limit")
}

func TestBadQueriesOfEvents(t *testing.T) {
	w := newWorld(t, nil)
	campaign, _ := w.pair()
	w.response(campaign)
	good := *w.feed("limit=1").NextCursor
	_, list := w.page(campaign + "/responses?limit=1")
	raw := must(base64.RawURLEncoding.DecodeString(good))
	edited := func(at int, b byte) string {
		c := slices.Clone(raw)
		c[at] ^= b
		return base64.RawURLEncoding.EncodeToString(c)
	}
	for _, cursor := range []string{"x", good[1:], good + "A", good[:len(good)-1] + next(good[len(good)-1]), list, edited(0, 1), edited(len(raw)-1, 1)} {
		w.do("GET", "/v1/events?cursor="+cursor, "").is(400, "invalid_cursor").faults("cursor invalid_cursor")
	}
	w.do("GET", "/v1/events?cursor="+good, "", as(w.other.key)).is(400, "invalid_cursor")
	w.do("GET", campaign+"/responses?cursor="+good, "").is(400, "invalid_cursor")
	for query, fault := range map[string]string{
		"event=all": "event unknown_event", "event=response.created,response.updated": "event unknown_event",
		"order=desc&cursor=" + good: "cursor not_applicable",
	} {
		w.do("GET", "/v1/events?"+query, "").is(400, "invalid_parameter").faults(fault)
	}
	// A forged position is refused, or reads only the client's own events.
	w.response(w.campaign(plainCampaign, as(w.other.key)), as(w.other.key))
	for at := 1; at < len(raw)-8; at++ {
		w.do("GET", "/v1/events?cursor="+edited(at, 0x80), "").is(400, "invalid_cursor").faults("cursor invalid_cursor")
		if a := w.do("GET", "/v1/events?cursor="+edited(at, 1), ""); strings.Count(a.body, "response.created") > 2 {
			a.errorf("shows another account's")
		}
	}
}
