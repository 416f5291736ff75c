package httpx_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// page reads a page and returns its uuids and the next cursor.
func (w *world) page(target string) (ids []string, next string) {
	w.tb.Helper()
	a := w.do("GET", target, "").is(200, "")
	items, ok := a.at("items").([]any)
	if !ok {
		w.tb.Fatalf("items are no array: %s", a.body)
	}
	for _, item := range items {
		m, _ := item.(map[string]any)
		id, _ := m["uuid"].(string)
		ids = append(ids, id)
	}
	next, _ = a.at("nextCursor").(string)
	return ids, next
}

// B6: a cursor fits the list with the order and the filters that it is from, and no other. TestLists tries other lists.
func TestForeignCursors(t *testing.T) {
	w := newWorld(t, nil)
	list := w.campaign(plainCampaign) + "/responses"
	twin, theirs := w.campaign(plainCampaign)+"/responses", w.campaign(plainCampaign, as(w.other.key))
	for range 3 {
		w.do("POST", list, plainResponse).is(201, "")
		w.campaign(plainCampaign, as(w.other.key))
	}
	cursor := func(query string) string {
		_, next := w.page(list + "?limit=1" + query)
		if next == "" {
			t.Fatalf("no cursor with %s", query)
		}
		return next
	}
	good := cursor("")
	raw := must(base64.RawURLEncoding.DecodeString(good))
	edited := func(at int) string {
		b := slices.Clone(raw)
		b[at] ^= 1
		return base64.RawURLEncoding.EncodeToString(b)
	}
	for _, query := range []string{
		"cursor=x", "cursor=" + good[:len(good)-1], "cursor=" + good + "A", "cursor=" + good + "%3D", "cursor=" + good[:10] + "%0A" + good[11:],
		"cursor=" + good[:len(good)-1] + next(good[len(good)-1]), "cursor=" + edited(0), "cursor=" + edited(len(raw)-1),
		"order=asc&cursor=" + good, "status=pending&cursor=" + good, "status=validated&cursor=" + cursor("&status=pending"),
		"reference=pending&cursor=" + cursor("&status=pending"), "reference=ada@example.com&cursor=" + cursor("&email=ada@example.com"),
		"cursor=" + cursor("&createdAfter=2020-01-01T00:00:00Z"),
		"createdBefore=2030-01-01T00:00:00Z&cursor=" + cursor("&updatedAfter=2020-01-01T00:00:00Z"),
		"email=a@example.com&cursor=" + cursor("&email=ada@example.com"),
	} {
		w.do("GET", list+"?"+query, "").is(400, "invalid_cursor").faults("cursor invalid_cursor")
	}
	w.do("GET", twin+"?cursor="+good, "").is(400, "invalid_cursor")
	w.do("GET", theirs+"/responses?cursor="+good, "", as(w.other.key)).is(400, "invalid_cursor")
	_, mine := w.page("/v1/campaigns?limit=1")
	w.do("GET", "/v1/campaigns?cursor="+mine, "", as(w.other.key)).is(400, "invalid_cursor")
	w.do("GET", list+"?cursor="+good+"&offset=0", "").is(400, "invalid_parameter").faults("cursor not_applicable")
	w.do("GET", list+"?limit=2&cursor="+good, "").is(200, "")
	// The same filter in another spelling is the same list.
	some := cursor("&status=pending&status=validated&createdAfter=2020-01-01T00:00:00.0004Z")
	w.do("GET", list+"?createdAfter=2020-01-01T01:00:00%2B01:00&status=validated&status=pending&status=pending&cursor="+some, "").is(200, "")
}

// next returns the next character of the base64 alphabet.
func next(c byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[(strings.IndexByte(alphabet, c)+1)%64])
}

func TestFilters(t *testing.T) {
	w := newWorld(t, nil)
	list := w.campaign(plainCampaign) + "/responses"
	start := w.now
	var ids, references []string
	for i, email := range []string{"a@example.com", "b@example.com", "a+b@example.com", "A@example.com"} {
		w.now = start.Add(time.Duration(i) * time.Second)
		a := w.do("POST", list, `{"user":{"email":"`+email+`"},"responses":{}}`).is(201, "")
		ids, references = append(ids, a.text("uuid")), append(references, a.text("reference"))
	}
	w.now = start.Add(time.Minute)
	w.do("PATCH", list+"/"+ids[1], `{"status":"validated"}`).is(200, "")
	w.do("PATCH", list+"/"+ids[2], `{"status":"completed"}`).is(200, "")
	at := func(d time.Duration) string { return url.QueryEscape(start.Add(d).Format(time.RFC3339Nano)) }
	for query, want := range map[string][]int{
		"status=pending&status=validated":                       {0, 1, 3},
		"email=a%2Bb@example.com":                               {2},
		"email=A@example.com":                                   {3},
		"reference=" + references[2]:                            {2},
		"createdAfter=" + at(0):                                 {1, 2, 3},
		"createdAfter=" + at(time.Nanosecond):                   {1, 2, 3},
		"createdBefore=" + at(time.Second):                      {0},
		"createdBefore=" + at(time.Second+time.Nanosecond):      {0, 1},
		"updatedAfter=" + at(30*time.Second):                    {1, 2},
		"updatedAfter=" + at(time.Minute):                       {},
		"createdAfter=2026-11-21T09:30:00.123%2B01:00":          {1, 2, 3},
		"createdBefore=9999-12-31T23:59:59.9999999Z":            {0, 1, 2, 3},
		"updatedAfter=" + at(30e9) + "&status=completed&order=": {2},
	} {
		got, _ := w.page(list + "?order=asc&" + query)
		var expected []string
		for _, i := range want {
			expected = append(expected, ids[i])
		}
		if !slices.Equal(got, expected) || w.total(list+"?"+query) != len(want) {
			t.Errorf("%s: %v, want %v", query, got, expected)
		}
	}
}

// A search ignores case, and has cursors of its own.
func TestSearch(t *testing.T) {
	w := newWorld(t, nil)
	for _, title := range []string{"Été", "Visitors", "ÉTÉ 2", "été & 3"} {
		w.campaign(fmt.Sprintf(`{"title":%q}`, title))
	}
	w.do("GET", "/v1/campaigns?search=%C3%A9t%C3%A9", "").is(200, "").has("3", "total")
	_, cursor := w.page("/v1/campaigns?search=%C3%A9t%C3%A9&limit=2")
	if page, _ := w.page("/v1/campaigns?search=%C3%A9t%C3%A9&cursor=" + cursor); len(page) != 1 {
		t.Errorf("the next page has %v", page)
	}
	w.do("GET", "/v1/campaigns?search=visit&cursor="+cursor, "").is(400, "invalid_cursor")
	w.do("GET", "/v1/campaigns?search="+strings.Repeat("%C3%A9", 201), "").is(400, "invalid_parameter").faults("search too_long")
}

// B1 to B5 and B8: queries that are refused.
func TestBadQueries(t *testing.T) {
	rows := []struct {
		query  string
		faults []string
	}{
		{"limit=0", f("limit invalid_value")},
		{"limit=%D9%A1", f("limit invalid_value")},
		{"limit=1;2", f("limit invalid_encoding")},
		{"limit%00=1", f(" unknown_parameter")},
		{"a;b=1", f(" invalid_encoding")},
		{"%ff=1", f(" invalid_encoding")},
		{"offset=2147483648", f("offset invalid_value")},
		{"order=ASC", f("order invalid_value")},
		{strings.Repeat("status=x&", 22), f("status too_many", "status too_many")},
		{"createdAfter=2026-11-21T08:30:00+01:00", f("createdAfter invalid_timestamp")},
		{strings.Repeat("x", 65) + "=1", f(" unknown_parameter")},
		{"limit=0&offset=x&order=x&email=&y=", f("limit invalid_value", "offset invalid_value", "order invalid_value", "y unknown_parameter")},
	}
	w := newWorld(t, nil)
	list := w.campaign(plainCampaign) + "/responses"
	for _, row := range rows {
		w.do("GET", list+"?"+row.query, "").is(400, "invalid_parameter").faults(row.faults...)
	}
	a := w.do("GET", list+"?createdAfter=2026-11-21T08:30:00+01:00", "")
	if !strings.Contains(a.problem().Errors[0].Detail, "%2B") {
		a.errorf("doesn't say how to escape: %s", a.body)
	}
	equal(t, len(w.do("GET", list+"?"+strings.Repeat("x=1&", 20_000), "").is(400, "invalid_parameter").problem().Errors), 100, "%d entries")
	w.do("GET", list+"?&limit=1&&", "").is(200, "").has("1", "limit")
	w.do("GET", list+"?l%69mit=%31", "").is(200, "").has("1", "limit")
	w.do("GET", list+"?limit=007", "").is(200, "").has("7", "limit")
}

// Invariant: a list is never held in memory whole. A page of large records ends early, and its cursor goes on to the rest; total counts all.
func TestLongListsAreSentInParts(t *testing.T) {
	w := newWorld(t, nil)
	list, large := w.campaign(plainCampaign)+"/responses", strings.Repeat("x", 900_000)
	for range 6 {
		w.do("POST", list, answers(`{"a":{"value":["`+large+`"]}}`)).is(201, "")
	}
	for _, path := range []string{list + "?limit=1000", "/v1/events"} {
		a := w.do("GET", path, "").is(200, "")
		if n := strings.Count(a.body, large); n == 0 || n > 5 || a.header.Get("Content-Length") != "" {
			t.Errorf("%s: %d items, %v", path, n, a.header)
		}
		if path != "/v1/events" && !strings.Contains(a.body, `"total":6,"limit":1000,`) {
			t.Errorf("%s: another total or limit", path)
		}
	}
	items, _ := w.follow("", "")
	if ids := w.walk(list + "?limit=1000"); len(items) != 6 || len(ids) != 6 {
		t.Errorf("%d events and %d responses, want 6", len(items), len(ids))
	}
	w.do("HEAD", list, "").is(200, "")
	if a := w.do("GET", "/v1/campaigns", "").is(200, ""); a.header.Get("Content-Length") == "" {
		a.errorf("no Content-Length")
	}
}

// A response has at most 4 MiB of answers, however many requests they come in.
func TestAnswersAreLimitedInSum(t *testing.T) {
	w := newWorld(t, nil)
	answer := func(name string) string { return `{"` + name + `":{"value":["` + strings.Repeat("x", 3<<20) + `"]}}` }
	list := w.campaign(plainCampaign) + "/responses"
	response := list + "/" + w.do("POST", list, answers(answer("a"))).is(201, "").text("uuid")
	w.do("PATCH", response, `{"status":"","responses":`+answer("b")+`}`).is(422, "too_large").faults("/status invalid_value", "/responses too_large")
}
