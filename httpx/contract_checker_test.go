package httpx_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A listener records the errors that a check reports to its test.
type listener struct {
	testing.TB
	told     []string
	cleanups []func()
}

func (l *listener) Errorf(format string, args ...any) {
	l.told = append(l.told, fmt.Sprintf(format, args...))
}

func (l *listener) Cleanup(f func()) { l.cleanups = append(l.cleanups, f) }

// A canned handler always sends the same reply.
type canned struct {
	status int
	header http.Header
	body   string
}

// ServeHTTP implements http.Handler.
func (a canned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

func (a canned) with(name, value string) canned {
	a.header = a.header.Clone()
	if a.header.Set(name, value); value == "" {
		a.header.Del(name)
	}
	return a
}

func (a canned) saying(old, new string) canned {
	if !strings.Contains(a.body, old) {
		panic(old + " is not in the body")
	}
	a.body = strings.Replace(a.body, old, new, 1)
	return a
}

// The check accepts correct replies and reports every violation.
func TestContractCheckReportsViolations(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	real := func(r *http.Request) canned {
		recorder := httptest.NewRecorder()
		w.bare.ServeHTTP(recorder, r)
		return canned{recorder.Code, recorder.Result().Header, recorder.Body.String()}
	}
	path := w.campaign(plainCampaign)
	get := func() *http.Request { return w.request("GET", path, "") }
	post := func(body string, edits ...func(*http.Request)) *http.Request {
		return w.request("POST", "/v1/campaigns", body, edits...)
	}
	got, made, list := real(get()), real(post(plainCampaign)), real(w.request("GET", "/v1/campaigns", ""))
	missing := real(w.request("GET", "/v1/campaigns/"+nobody, ""))
	unchanged := real(w.request("GET", path, "", header("If-None-Match", got.header.Get("Etag"))))
	nowhere, wrong := real(w.request("GET", "/x", "")), real(w.request("PATCH", path, ""))
	query := func(s string) *http.Request { return w.request("GET", "/v1/campaigns?"+s, "") }
	for _, row := range []struct {
		what   string
		answer canned
		r      *http.Request
		want   string // "" for none
	}{
		{"reply", got, get(), ""},
		{"problem", missing, get(), ""},
		{"unknown path", nowhere, w.request("GET", "/x", ""), ""},
		{"not modified", unchanged, get(), ""},
		{"undocumented body", unchanged.with("Content-Type", "text/plain"), get(), "but none is documented"},
		{"unknown method", wrong, w.request("PATCH", path, ""), ""},
		{"undocumented status", canned{202, got.header, got.body}, get(), "202: the status is not documented"},
		{"undocumented field", got.saying(`{"uuid"`, `{"zzz":1,"uuid"`), get(), "/zzz"},
		{"undocumented nested field", list.saying(`{"uuid"`, `{"zzz":1,"uuid"`), query(""), "/items/0/zzz"},
		{"missing field", got.saying(`"title":"Survey",`, ""), get(), "'title'"},
		{"wrong type", got.saying(`"title":"Survey"`, `"title":1`), get(), "/title"},
		{"malformed JSON", got.saying(`{`, ""), get(), "the answer:"},
		{"missing ETag", got.with("Etag", ""), get(), "the header Etag is missing"},
		{"malformed ETag", got.with("Etag", "1"), get(), "the header Etag:"},
		{"undocumented header", got.with("X-Zzz", "1"), get(), "the header X-Zzz is not documented"},
		{"undocumented media type", got.with("Content-Type", "text/plain"), get(), `the media type "text/plain" is not documented`},
		{"undocumented code", missing.saying(`"not_found"`, `"zzz"`), get(), "the code zzz is not documented"},
		{"code of another status", missing.saying(`"not_found"`, `"internal"`), get(), "the code internal is not documented"},
		{"undocumented field of a problem", missing.saying(`{`, `{"zzz":1,`), get(), "/zzz"},
		{"success on an unknown path", got, w.request("GET", "/v1/zzz", ""), "must be answered 404"},
		{"success with an unknown method", got, w.request("PATCH", path, ""), "must be answered 405"},
		{"success with an invalid identifier", got, w.request("GET", path+"x", ""), "must be answered 404"},
		{"undocumented code on an unknown path", nowhere.saying(`"not_found"`, `"zzz"`), w.request("GET", "/x", ""), "code zzz"},
		{"valid request", made, post(plainCampaign), ""},
		{"unknown field accepted", made, post(`{"title":"x","zzz":1}`), "the body was taken:"},
		{"missing body accepted", made, post(""), "the body was taken:"},
		{"refused request", missing, get(), ""},
		{"wrong media type accepted", made, post(plainCampaign, header("Content-Type", "text/plain")), "was taken, but is not documented"},
		{"invalid header accepted", made, post(plainCampaign, once("a b")), "the parameter Idempotency-Key was taken"},
		{"unknown parameter accepted", list, query("zzz=1"), `the parameter "zzz" was taken`},
		{"invalid parameter accepted", list, query("limit=x"), "the parameter limit was taken"},
		{"large integer", list, query("limit=99999999999999999999"), ""},
		{"repeated parameter accepted", list, query("limit=1&limit=2"), "the parameter limit was taken 2 times"},
		{"missing key accepted", got, w.request("GET", path, "", func(r *http.Request) { r.Header.Del("Authorization") }), "answered without a key"},
	} {
		l := &listener{}
		h := checked(func() testing.TB { return l }, row.answer, false)
		h.(*checker).invented = true
		h.ServeHTTP(httptest.NewRecorder(), row.r)
		told := strings.Join(l.told, "\n")
		if row.want == "" && told != "" || !strings.Contains(told, row.want) {
			t.Errorf("%s: told %q, want %q", row.what, told, row.want)
		}
		for _, end := range l.cleanups {
			end()
		}
		l.told = nil
		if h.ServeHTTP(httptest.NewRecorder(), row.r); len(l.told) > 0 {
			t.Errorf("%s: told after the test: %q", row.what, l.told)
		}
	}
}

// The check counts what the tests have covered, and too little fails.
func TestContractCoverageMustBeComplete(t *testing.T) {
	c := theContract(t)
	all := func() *tally {
		seen := new(tally)
		for _, o := range c.operations {
			for status, a := range o.answers {
				what := fmt.Sprintf("%s %d", o.id, status)
				seen.see(what)
				for _, code := range a.codes {
					seen.see(what + " " + code)
				}
				for name := range a.headers {
					seen.see("header " + name)
				}
			}
		}
		for event := range c.webhooks {
			seen.see("event " + event)
		}
		for _, m := range c.members {
			seen.see("member " + m.at)
		}
		seen.see("event truncated")
		seen.see("event test")
		return seen
	}
	if b := new(strings.Builder); !all().report(b, c, false) || b.Len() > 0 {
		t.Errorf("everything was seen: %s", b)
	}
	if new(tally).report(io.Discard, c, false) {
		t.Error("nothing was seen, and that is enough")
	}
	for _, forget := range []string{
		"getMe 200", "getMe 500", "event test", "event truncated", "event file.uploaded", "header Etag", "member " + c.members[0].at,
	} {
		seen, b := all(), new(strings.Builder)
		delete(seen.what, forget)
		if seen.report(b, c, false) || !strings.Contains(b.String(), "not seen: ") {
			t.Errorf("without %q: %s", forget, b)
		}
	}
}
