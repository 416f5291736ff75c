package httpx_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A bad is an invalid body and the expected errors.
type bad struct {
	name, body string
	status     int
	code       string
	faults     []string
}

// refuses sends each body, checks the reply, and checks that nothing changed.
func (w *world) refuses(t *testing.T, method, path, list string, rows []bad) {
	t.Helper()
	before := w.total(list)
	tag := ""
	if method != "POST" {
		tag = w.do("GET", path, "").is(200, "").header.Get("Etag")
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			w.tb = t
			a := w.do(method, path, row.body).is(row.status, row.code)
			if row.faults != nil {
				a.faults(row.faults...)
			}
			equal(t, w.total(list), before, "%d records")
			if tag != "" && w.do("GET", path, "").header.Get("Etag") != tag {
				t.Error("the record was changed")
			}
		})
	}
	w.tb = t
}

// user returns a body with a user; rest follows its address.
func user(rest string) string { return `{"user":{"email":"a@example.com"` + rest + `},"responses":{}}` }

// answers returns a body with these answers.
func answers(s string) string { return `{"user":{"email":"a@example.com"},"responses":` + s + `}` }

func f(list ...string) []string { return list }

// A1 to A11: bodies that aren't an acceptable JSON object.
func malformedBodies() []bad {
	const nul = "\x00"
	return []bad{
		{"A1 duplicate, escaped", `{"user":{},"responses":{},"\u0075ser":{}}`, 400, "duplicate_member", f("/user duplicate_member")},
		{"A1 duplicate, nested", user(`,"email":"b@example.com"`), 400, "duplicate_member", f("/user/email duplicate_member")},
		{"A1 duplicate answer", answers(`{"a":{"value":[]},"a":{"value":[]}}`), 400, "duplicate_member", f("/responses/a duplicate_member")},
		{"A4 two documents", plainResponse + "{}", 400, "trailing_data", f()},
		{"A4 byte order mark", "\uFEFF" + plainResponse, 400, "byte_order_mark", f()},
		{"A4 UTF-16", "\xff\xfe{\x00}\x00", 400, "invalid_utf8", nil},
		{"A4 NUL after the document", plainResponse + nul, 400, "invalid_body", f(" nul_not_allowed")},
		{"A4 NUL before the document", nul + plainResponse, 400, "invalid_body", f(" nul_not_allowed")},
		{"A5 number", "1", 400, "not_an_object", f()},
		{"A6 invalid UTF-8", user(`,"firstName":"` + "\xff" + `"`), 400, "invalid_utf8", f("/user/firstName invalid_utf8")},
		{"A6 surrogate in UTF-8", user(`,"firstName":"` + "\xed\xa0\x80" + `"`), 400, "invalid_utf8", nil},
		{"A6 invalid UTF-8 in a name", answers(`{"` + "\xff" + `":{"value":[]}}`), 400, "invalid_utf8", nil},
		{"A6 high surrogate", user(`,"firstName":"\ud800"`), 400, "lone_surrogate", f("/user/firstName lone_surrogate")},
		{"A6 low surrogate", user(`,"firstName":"\uDFff"`), 400, "lone_surrogate", f("/user/firstName lone_surrogate")},
		{"A6 surrogate in a name", answers(`{"\ud800":{"value":[]}}`), 400, "lone_surrogate", f("/responses lone_surrogate")},
		{"A7 raw NUL in a value", user(`,"firstName":"a` + nul + `b"`), 400, "invalid_body", f("/user/firstName nul_not_allowed")},
		{"A7 raw NUL in a name", answers(`{"a` + nul + `":{"value":[]}}`), 400, "invalid_body", f("/responses nul_not_allowed")},
		{"A9 depth 1 000 000", `{"user":` + strings.Repeat("[", 1_000_000), 400, "invalid_body", f("/user invalid_type")},
		{"A10 NaN", `{"user":NaN}`, 400, "malformed_json", f("/user malformed_json")},
		{"cut short", plainResponse[:len(plainResponse)-1], 400, "malformed_json", nil},
		{"cut short in a string", `{"user":{"email":"a`, 400, "malformed_json", f("/user/email malformed_json")},
		{"control character", user(`,"firstName":"` + "\n" + `"`), 400, "malformed_json", f("/user/firstName malformed_json")},
	}
}

func TestMalformedBodiesOfResponses(t *testing.T) {
	w := newWorld(t, nil)
	list := w.campaign(plainCampaign) + "/responses"
	w.refuses(t, "POST", list, list, malformedBodies())
}

func TestInvalidFieldsOfResponses(t *testing.T) {
	long := strings.Repeat("n", 1<<20)
	w := newWorld(t, nil)
	list := w.campaign(plainCampaign) + "/responses"
	w.refuses(t, "POST", list, list, []bad{
		{"A7 escaped NUL in a value", user(`,"firstName":"a\u0000b"`), 400, "invalid_body", f("/user/firstName nul_not_allowed")},
		{"A7 escaped NUL in an answer", answers(`{"a":{"value":["x","\u0000"]}}`), 400, "invalid_body",
			f("/responses/a/value/1 nul_not_allowed")},
		{"A7 escaped NUL in a name", answers(`{"a\u0000b":{"value":["x"]}}`), 400, "invalid_body", f("/responses nul_not_allowed")},
		{"A11 long name", answers(`{"` + long + `":{"value":[1,2,3]}}`), 400, "invalid_body", f("/responses invalid_type")},
		{"A11 long unknown name", `{"` + long + `":1,"user":{"email":"a@example.com"},"responses":{}}`, 400, "invalid_body", f(" unknown_member")},
		{"A11 empty objects", `{"user":[` + strings.Repeat("{},", 299_999) + `{}]}`, 400, "invalid_body", f("/user invalid_type")},
		{"A11 many answers", answers(manyAnswers(100_000)), 422, "validation_failed", f("/responses too_many")},
		{"null user", `{"user":null,"responses":{}}`, 400, "invalid_body", f("/user invalid_type")},
		{"null responses", `{"user":{"email":"a@example.com"},"responses":null}`, 400, "invalid_body", f("/responses invalid_type")},
		{"answer of another type", answers(`{"b":[]}`), 400, "invalid_body", f("/responses/b invalid_type")},
		{"null answer", answers(`{"f":null}`), 400, "invalid_body", f("/responses/f invalid_type")},
		{"null in a value", answers(`{"c":{"value":["x",null]}}`), 400, "invalid_body", f("/responses/c/value/1 invalid_type")},
		{"rules, all at once", `{"user":{"email":"a@"},"responses":{"d":{},"e":{}}}`, 422, "validation_failed",
			f("/responses/d/value required", "/responses/e/value required", "/user/email invalid_email")},
		{"nothing", `{}`, 422, "validation_failed", f("/responses required", "/user required")},
	})
}

func manyAnswers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":{"value":[]}`, i)
	}
	return "{" + b.String()[1:] + "}"
}

func TestInvalidFieldsOfCampaigns(t *testing.T) {
	rows := []bad{
		{"A2 other case", `{"Title":"x","title":"x"}`, 400, "invalid_body", f("/Title unknown_member")},
		{"A10 exponents", `{"title":"x","modules":[{"name":"b","maxLength":1e3}]}`, 400, "invalid_body", f("/modules/0/maxLength invalid_integer")},
		{"A10 large", `{"title":"x","modules":[{"name":"a"},{"name":"b","maxLength":9223372036854775808}]}`, 400, "invalid_body",
			f("/modules/1/maxLength invalid_integer")},
		{"A10 negative", `{"title":"x","modules":[{"name":"a","maxLength":-1}]}`, 422, "validation_failed", f("/modules/0/maxLength out_of_range")},
		{"A11 much metadata", `{"title":"x","metadata":{` + strings.ReplaceAll(manyAnswers(5_000)[1:], `{"value":[]}`, `""`) + `}`, 422,
			"validation_failed", f("/metadata too_many")},
		{"A11 reading ends at the limit", `{"title":"x","modules":[` + strings.Repeat("{},", 2_001) + `1]}`, 422, "validation_failed", f("/modules too_many")},
		{"A11 reading metadata ends at the limit", `{"title":"x","metadata":{"x":"",` + strings.ReplaceAll(strings.ReplaceAll(manyAnswers(2_000)[1:], `{"value":[]}}`, `1}`), `{"value":[]}`, `""`) + `}`,
			422, "validation_failed", f("/metadata too_many")},
		{"empty words", `{"title":"x","status":"","modules":[{"name":"a","type":""}]}`, 422, "validation_failed",
			f("/status invalid_value", "/modules/0/type invalid_value")},
		{"wrong type of a module", `{"title":"x","modules":[{"name":"a"},1]}`, 400, "invalid_body", f("/modules/1 invalid_type")},
		{"null name", `{"title":"x","modules":[{"name":null}]}`, 400, "invalid_body", f("/modules/0/name invalid_type")},
		{"null option", `{"title":"x","modules":[{"name":"a","options":["a",null]}]}`, 400, "invalid_body", f("/modules/0/options/1 invalid_type")},
		{"wrong type in metadata", `{"title":"x","metadata":{"e":"x","c/d":{}}}`, 400, "invalid_body", f("/metadata/c~1d invalid_type")},
		{"NUL in metadata", `{"title":"x","metadata":{"a\u0000":"x"}}`, 400, "invalid_body", f("/metadata nul_not_allowed")},
		{"rules, all at once", `{"title":" ","status":"ajar","opensAt":"2026-01-02T00:00:00Z","closesAt":"2026-01-01T00:00:00Z",` +
			`"modules":[{"name":"a"},{"name":"a","type":"x"}]}`, 422, "validation_failed",
			f("/title required", "/status invalid_value", "/closesAt out_of_range", "/modules/1/name duplicate", "/modules/1/type invalid_value")},
	}
	w := newWorld(t, nil)
	w.refuses(t, "POST", "/v1/campaigns", "/v1/campaigns", rows)
	w.refuses(t, "PUT", w.campaign(plainCampaign), "/v1/campaigns", rows)
	w.refuses(t, "POST", "/v1/campaigns", "/v1/campaigns", []bad{
		{"A3 server-owned members", `{"title":"x","uuid":"x"}`, 400, "invalid_body", f("/uuid unknown_member")},
	})
}

// A12: dates.
func TestTimestamps(t *testing.T) {
	refused := []string{
		"", "2026-11-21", "2026-11-21T08:30:00", "2026-11-21 08:30:00Z", "2026-11-21T08:30Z", "2026-11-21T8:30:00Z",
		"2026-11-21T08:30:00,5Z", "2026-11-21T08:30:00.Z", "2026-11-21T08:30:00z", "2026-11-21t08:30:00Z", "2026-11-21T08:30:00+24:00",
		"2026-11-21T08:30:00+01:60", "2026-11-21T08:30:00+0100", "2026-12-31T23:59:60Z", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
		"0001-01-01T00:00:00Z", "1970-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "10000-01-01T00:00:00Z", "infinity", "1763713800",
		"2026-11-21T08:30:00." + strings.Repeat("1", 100) + "Z", "２026-11-21T08:30:00Z",
	}
	taken := map[string]string{
		"2026-11-21T08:30:00Z":           "2026-11-21T08:30:00.000Z",
		"2026-11-21T08:30:00.123456789Z": "2026-11-21T08:30:00.123Z",
		"2026-11-21T08:30:00.9999Z":      "2026-11-21T08:30:00.999Z",
		"2026-11-21T08:30:00+01:00":      "2026-11-21T07:30:00.000Z",
		"2026-11-21T08:30:00-23:59":      "2026-11-22T08:29:00.000Z",
		"2026-11-21T08:30:00-00:00":      "2026-11-21T08:30:00.000Z",
		"1970-01-01T00:00:00Z":           "1970-01-01T00:00:00.000Z",
		"1969-12-31T23:00:00-01:00":      "1970-01-01T00:00:00.000Z",
		"9999-12-31T23:59:59.999Z":       "9999-12-31T23:59:59.999Z",
		"2024-02-29T00:00:00Z":           "2024-02-29T00:00:00.000Z",
	}
	w := newWorld(t, nil)
	for _, s := range refused {
		a := w.do("POST", "/v1/campaigns", `{"title":"x","opensAt":"`+s+`"}`)
		a.what += " " + s
		a.is(400, "invalid_body").faults("/opensAt invalid_timestamp")
	}
	for in, out := range taken {
		a := w.do("POST", "/v1/campaigns", `{"title":"x","opensAt":"`+in+`"}`).is(201, "").has(`"`+out+`"`, "opensAt")
		w.do("GET", "/v1/campaigns/"+a.text("uuid"), "").is(200, "").has(`"`+out+`"`, "opensAt")
	}
}

// A6, A8, A13, A22: text comes back as it was sent.
func TestTextRoundTrip(t *testing.T) {
	texts := []string{
		`\\u0000`, `?`, `?0`, `$1`, `::`, `--`, `'`, `\\'`, `$$`, `%s`, `%`, `_`, `;`, `\"`, `\\`, `/`, `\/`, `\b\f\n\r\t`,
		"\u007f", "\uFFFE\uFFFF", "\uFFFD", `\uFFFE`, `\ud83d\ude00`, "😀", "\u202E\u2066abc\u2069", "\u200B\u200D\uFEFF",
		"e" + strings.Repeat("\u0301", 50), "é", "e\u0301", "ı", "İ", "ß", "A", "a", "\U0010FFFF", "<script>&amp;</script>", "\u2028\u2029",
		`__proto__`, `constructor`, `toString`, `hasOwnProperty`, `value`, ` leading and trailing `, "",
	}
	onEveryStore(t, func(_ *testing.T, w *world) {
		list := w.campaign(plainCampaign) + "/responses"
		var all strings.Builder
		for i, text := range texts {
			fmt.Fprintf(&all, `,"%s|%d":{"value":["%s"]}`, text, i, text)
		}
		object := "{" + all.String()[1:] + "}"
		a := w.do("POST", list, answers(object)).is(201, "").has(object, "responses")
		w.do("GET", list+"/"+a.text("uuid"), "").is(200, "").has(object, "responses")
		for _, text := range texts {
			if text == "" {
				continue
			}
			a := w.do("POST", "/v1/campaigns", `{"title":"x`+text+`","metadata":{"`+text+`":"`+text+`"}}`).
				is(201, "").has(`"x`+text+`"`, "title")
			w.do("GET", "/v1/campaigns/"+a.text("uuid"), "").is(200, "").
				has(`"x`+text+`"`, "title").has(`{"`+text+`":"`+text+`"}`, "metadata")
		}
	})
}

// A16, A17: media types.
func TestMediaTypes(t *testing.T) {
	w := newWorld(t, nil)
	for _, good := range []string{
		"application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", "Application/JSON",
		`application/json; charset="utf-8"`, "application/json;",
	} {
		w.do("POST", "/v1/campaigns", plainCampaign, header("Content-Type", good)).is(201, "")
	}
	before := w.total("/v1/campaigns")
	for _, values := range [][]string{
		nil, {""}, {"text/plain"}, {"text/json"}, {"application/json; charset=utf-16"}, {"application/json; charset=latin1"},
		{"multipart/form-data; boundary=x"}, {"application/x-www-form-urlencoded"}, {"application/jsonp"}, {"application/json, text/plain"},
		{"application/merge-patch+json"}, {"application/json; x=1"}, {"application/json", "application/json"}, {"application/json; charset"},
	} {
		w.do("POST", "/v1/campaigns", plainCampaign, header("Content-Type", values...)).is(415, "unsupported_media_type")
	}
	for _, encoding := range []string{"gzip", "br", "deflate", "GZIP", "identity, gzip", "x"} {
		w.do("POST", "/v1/campaigns", plainCampaign, header("Content-Encoding", encoding)).
			is(415, "unsupported_content_encoding")
	}
	w.do("POST", "/v1/campaigns", plainCampaign, header("Content-Encoding", "identity", "gzip")).
		is(415, "unsupported_content_encoding")
	response := w.response(w.campaign(plainCampaign))
	for mediaType, status := range map[string]int{
		"application/json": 200, "application/merge-patch+json": 200, "application/Merge-Patch+json; charset=utf-8": 200,
		"application/json-patch+json": 415, "": 415,
	} {
		a := w.do("PATCH", response, `{"status":"validated"}`, header("Content-Type", mediaType)).is(status, "")
		if got := a.header.Get("Accept-Patch"); got != "application/merge-patch+json, application/json" {
			a.errorf("%s: Accept-Patch is %q", mediaType, got)
		}
	}
	if a := w.do("OPTIONS", response, "").is(405, ""); a.header.Get("Accept-Patch") == "" {
		a.errorf("no Accept-Patch")
	}
	before++
	equal(t, w.total("/v1/campaigns"), before, "%d campaigns")
	w.do("POST", "/v1/campaigns", plainCampaign, header("Content-Encoding", "Identity")).is(201, "")
}

// C5: bodies over the limit.
func TestBodyLimit(t *testing.T) {
	w := newWorld(t, nil)
	fits := `{"title":"x","description":""}` + strings.Repeat(" ", 4<<20-30)
	w.do("POST", "/v1/campaigns", fits).is(201, "")
	for _, edit := range []func(*http.Request){
		func(*http.Request) {},
		func(r *http.Request) { r.ContentLength = -1 },
	} {
		a := w.do("POST", "/v1/campaigns", fits+" ", edit).is(413, "body_too_large")
		if a.wantHeader("Connection", "close"); !strings.Contains(a.problem().Detail, "4194304") {
			a.errorf("doesn't name the limit: %s", a.body)
		}
	}
	a := w.do("POST", "/v1/campaigns", fits, func(r *http.Request) {
		r.Body = http.MaxBytesReader(nil, r.Body, 10) // the host application's own limit
	}).is(413, "body_too_large")
	if !strings.Contains(a.problem().Detail, " 10 bytes") {
		a.errorf("doesn't name the limit: %s", a.body)
	}
	equal(t, w.total("/v1/campaigns"), 1, "%d campaigns")
}

// Requests that a host makes with http.NewRequest may have no Body at all.
func TestNoBody(t *testing.T) {
	w := newWorld(t, nil)
	none := func(r *http.Request) { r.Body = nil }
	w.do("GET", "/v1/campaigns", "", none).is(200, "")
	w.do("POST", "/v1/campaigns", "", none).is(400, "")
	w.do("POST", w.response(w.campaign(`{"title":"x"}`))+"/files", "", none).is(201, "")
}

// A14: names that look alike are different names, and answers keep the order in which they were sent.
func TestNamesThatLookAlikeAreDifferent(t *testing.T) {
	w := newWorld(t, nil)
	list := w.campaign(`{"title":"x","modules":[{"name":"é"},{"name":"e\u0301"},{"name":"A"},{"name":"a"},{"name":"ı"},{"name":"i"}]}`) + "/responses"
	const twins = `{"i":{"value":["6"]},"ı":{"value":["5"]},"A":{"value":["3"]},"a":{"value":["4"]},"é":{"value":["1"]},"é":{"value":["2"]}}`
	a := w.do("POST", list, answers(twins)).is(201, "")
	if !strings.Contains(a.body, `"responses":`+twins) {
		t.Errorf("%s in %s", twins, a.body)
	}
	w.do("PATCH", list+"/"+a.text("uuid"), `{"responses":{"e\u0301":null,"A":null}}`).is(200, "").
		has(`{"é":{"value":["1"]},"a":{"value":["4"]},"ı":{"value":["5"]},"i":{"value":["6"]}}`, "responses")
}
