package httpx_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// century is a window whose end no test reaches, by any clock.
const century = 50 * 365 * 24 * time.Hour

// limit replaces the service by one with a quota.
func (w *world) limit(n int, opts *httpx.Options, edits ...func(*formsvc.Options)) {
	w.tb.Helper()
	w.use(w.store, opts, func(o *formsvc.Options) {
		o.Quota, o.QuotaWindow = n, century
		for _, edit := range edits {
			edit(o)
		}
	})
}

// number returns a header that must be a whole number.
func (a *answer) number(name string) int {
	a.tb.Helper()
	n, err := strconv.Atoi(a.header.Get(name))
	if err != nil {
		a.tb.Fatalf("%s: %s = %q", a.what, name, a.header.Get(name))
	}
	return n
}

func (a *answer) wantHeader(name, want string) *answer {
	a.tb.Helper()
	if got := a.header.Get(name); got != want {
		a.errorf("%s = %q, want %q", name, got, want)
	}
	return a
}

// left checks the headers about a key's quota, with want requests left.
func (a *answer) left(limit, window, want int) *answer {
	a.tb.Helper()
	reset := a.number("X-RateLimit-Reset")
	if reset < 0 || reset > window {
		a.errorf("the window of %d s ends in %d", window, reset)
	}
	return a.wantHeader("X-RateLimit-Limit", strconv.Itoa(limit)).
		wantHeader("X-RateLimit-Remaining", strconv.Itoa(want)).
		wantHeader("RateLimit-Policy", fmt.Sprintf(`"key";q=%d;w=%d`, limit, window)).
		wantHeader("RateLimit", fmt.Sprintf(`"key";r=%d;t=%d`, want, reset))
}

func TestQuotaHeaders(t *testing.T) {
	w := newWorld(t, nil)
	hour := func(o *formsvc.Options) { o.QuotaWindow = time.Hour }
	w.do("GET", "/v1/me", "").is(200, "").has("null", "quota")
	w.do("GET", "/v1/me", "").wantHeader("RateLimit", "").wantHeader("X-RateLimit-Limit", "")
	w.limit(1000, nil, hour)
	me := w.do("GET", "/v1/me", "").is(200, "").left(1000, 3600, 999)
	me.has(fmt.Sprintf(`{"limit":1000,"remaining":999,"resetSeconds":%d,"windowSeconds":3600}`, me.number("X-RateLimit-Reset")), "quota")
	w.do("GET", "/v1/campaigns", "").is(200, "").left(1000, 3600, 998)
	w.do("GET", "/v1/me", "", as(w.other.key)).is(200, "").left(1000, 3600, 999)

	// The window is far from its end in every run.
	w.limit(3, nil)
	key := w.key(w.mine, formsvc.CampaignsRead)
	for left := 2; left >= 0; left-- {
		w.do("GET", "/v1/campaigns", "", as(key)).is(200, "").left(3, int(century/time.Second), left)
	}
	a := w.do("POST", "/v1/campaigns", plainCampaign, as(key)).is(429, "quota_exceeded").left(3, int(century/time.Second), 0)
	a.wantHeader("Retry-After", a.header.Get("X-RateLimit-Reset"))
	if a.number("Retry-After") < 1 || !strings.Contains(a.problem().Detail, "quota of 3 requests") {
		a.errorf("Retry-After %q, %s", a.header.Get("Retry-After"), a.body)
	}
	w.do("GET", "/v1/campaigns", "").is(200, "") // another key

	w.limit(1000, nil, hour, func(o *formsvc.Options) { o.QuotaPerAccount = true })
	w.do("GET", "/v1/me", "").wantHeader("RateLimit-Policy", `"account";q=1000;w=3600`)
}

// Users of a host application's login have a quota and a rate each, and replies name what is counted.
func TestQuotaOfUsers(t *testing.T) {
	w := newWorld(t, nil)
	own := func(o httpx.Options) *httpx.Options {
		o.Authenticate = func(r *http.Request) (*formsvc.Principal, error) {
			user := r.Header.Get("User")
			if user == "" {
				return nil, formsvc.ErrUnauthenticated
			}
			return &formsvc.Principal{AccountID: w.mine.account.ID, UserID: strings.Trim(user, "-"), NoQuota: user == "admin"}, nil
		}
		return &o
	}
	w.limit(3, own(httpx.Options{}))
	year := int(century / time.Second)
	for left := 2; left >= 0; left-- {
		w.do("GET", "/v1/me", "", header("User", "ada")).is(200, "").wantHeader("RateLimit-Policy", fmt.Sprintf(`"user";q=3;w=%d`, year)).
			wantHeader("X-RateLimit-Remaining", strconv.Itoa(left))
	}
	w.do("GET", "/v1/me", "", header("User", "ada")).is(429, "quota_exceeded")
	w.do("GET", "/v1/me", "", header("User", "bob")).is(200, "").wantHeader("X-RateLimit-Remaining", "2")
	w.do("GET", "/v1/me", "").is(200, "").left(3, year, 2) // a key
	w.do("GET", "/v1/me", "", header("User", "-")).is(200, "").wantHeader("RateLimit-Policy", fmt.Sprintf(`"account";q=3;w=%d`, year))
	w.do("GET", "/v1/me", "", header("User", "admin")).is(200, "").has("null", "quota").wantHeader("RateLimit-Policy", "")
	w.limit(3, own(httpx.Options{Rate: 0.001}))
	w.do("GET", "/v1/me", "", header("User", "carl")).is(200, "")
	w.do("GET", "/v1/me", "", header("User", "carl")).is(429, "rate_limited")
	w.do("GET", "/v1/me", "", header("User", "dan")).is(200, "")
}

// The time left is rounded up: a client that waits that long isn't refused again.
func TestQuotaReset(t *testing.T) {
	w := newWorld(t, nil)
	w.limit(1, nil, func(o *formsvc.Options) { o.QuotaWindow = time.Hour })
	w.now = time.Date(2026, 11, 21, 8, 59, 57, 1, time.UTC)
	w.do("GET", "/v1/me", "").is(200, "").wantHeader("X-RateLimit-Reset", "3")
	w.do("GET", "/v1/me", "").is(429, "quota_exceeded").wantHeader("Retry-After", "3")
	w.now = w.now.Add(3*time.Second - 2)
	w.do("GET", "/v1/me", "").is(429, "quota_exceeded").wantHeader("Retry-After", "1")
	w.now = w.now.Add(time.Nanosecond)
	w.do("GET", "/v1/me", "").is(200, "").wantHeader("X-RateLimit-Reset", "3600")
}

// E8: every request with a valid key to a non-public route counts, whatever its outcome, and if it is a replay.
func TestRequestsThatCountForTheQuota(t *testing.T) {
	w := newWorld(t, nil)
	campaign, response := w.pair()
	list := w.requests(campaign, response)
	w.limit(10_000, nil)
	left := w.do("GET", "/v1/me", "").number("X-RateLimit-Remaining")
	costs := func(what string, a *answer, cost int) {
		t.Helper()
		left -= cost
		if shown := a.header.Get("X-RateLimit-Remaining"); shown != "" && shown != strconv.Itoa(left) || cost > 0 && shown == "" {
			a.errorf("%s: remaining %q, want %d", what, shown, left)
		}
		if left--; w.do("GET", "/v1/me", "").number("X-RateLimit-Remaining") != left {
			a.errorf("%s: cost isn't %d", what, cost)
			left = w.do("GET", "/v1/me", "").number("X-RateLimit-Remaining")
		}
	}
	for _, s := range list {
		if s.Public {
			costs("a public route", w.do(s.Method, s.path, ""), 0)
			continue
		}
		costs("success", w.do(s.Method, s.path, s.body), 1)
		costs("not found", w.do(s.Method, s.nowhere, s.body), 1)
		costs("an unknown parameter", w.do(s.Method, s.path+"?nonsense=1", s.body), 1)
		costs("another path", w.do(s.Method, s.path+"/nowhere", s.body), 0)
		costs("an invalid key", w.do(s.Method, s.path, s.body, as("nonsense")), 0)
	}
	costs("HEAD", w.do("HEAD", campaign, ""), 1)
	costs("an unchanged record", w.do("GET", campaign, "", header("If-None-Match", "*")).is(304, ""), 1)
	file := "/v1/files/" + w.do("POST", response+"/files", "x").is(201, "").text("uuid")
	costs("an unchanged file", w.do("GET", file, "", header("If-None-Match", w.do("HEAD", file, "").header.Get("Etag"))).is(304, ""), 3) // with the upload and HEAD
	costs("an invalid body", w.do("PUT", campaign, `{"nonsense":1}`), 1)
	costs("an upload that fails", w.do("POST", response+"/files", strings.Repeat("x", maxFile+1)).is(413, ""), 1)
	w.do("PUT", campaign, plainCampaign, as(w.key(w.mine, formsvc.CampaignsRead))).is(403, "").wantHeader("X-RateLimit-Remaining", "9999")
	for path, body := range map[string]string{"/v1/campaigns": plainCampaign, response + "/files": "x"} {
		key := once("again" + path)
		first := w.do("POST", path, body, key).is(201, "")
		costs("the first one", first, 1)
		costs("a replay", w.do("POST", path, body, key).repeats(first), 1)
		costs("another request with the key", w.do("POST", path, body+" ", key).is(422, ""), 1)
		costs("a refusal", w.do("POST", path+"?x=1", body, key).is(400, ""), 1)
	}
}

func from(address string) func(*http.Request) {
	return func(r *http.Request) { r.RemoteAddr = address }
}

// D8: after too many failures the client gets 429, and a valid key always works.
func TestFailedAuthenticationIsLimited(t *testing.T) {
	w := newWorld(t, nil)
	elsewhere := newWorld(t, nil).mine.key // with a valid checksum
	bad := []func(*http.Request){
		as("nonsense"), as(elsewhere), header("Authorization"), header("Authorization", "Basic abc"), header("Authorization", "Bearer a", "Bearer b"),
	}
	for i := range httpx.FailureBurst {
		w.do("GET", "/v1/me", "", bad[i%len(bad)], from("192.0.2.7:99")).is(401, "unauthenticated")
	}
	for i := range len(bad) {
		a := w.do("GET", "/v1/me", "", bad[i%len(bad)], from(fmt.Sprintf("192.0.2.7:%d", i))).is(429, "too_many_failures")
		a.wantHeader("Retry-After", "1").wantHeader("Www-Authenticate", "")
		w.do("GET", "/v1/me", "", from("192.0.2.7:99")).is(200, "")
		w.do("GET", "/v1/me", "", from("192.0.2.7:99"), as(w.key(w.mine, formsvc.CampaignsRead))).is(200, "") // not used before
	}
	w.do("GET", "/v1/me", "", as("nonsense"), from("192.0.2.8:99")).is(401, "unauthenticated")
	w.now = w.now.Add(900 * time.Millisecond)
	w.do("GET", "/v1/me", "", as("nonsense"), from("192.0.2.7:99")).is(429, "too_many_failures").wantHeader("Retry-After", "1")
	w.now = w.now.Add(100 * time.Millisecond)
	w.do("GET", "/v1/me", "", as("nonsense"), from("192.0.2.7:99")).is(401, "unauthenticated")
	w.do("GET", "/v1/me", "", as("nonsense"), from("192.0.2.7:99")).is(429, "too_many_failures")
	w.do("GET", "/healthz", "", from("192.0.2.7:99")).is(200, "")
}

// Failures count for an IPv4 address, or for a /64 network of IPv6.
func TestAddressesOfFailures(t *testing.T) {
	w := newWorld(t, nil)
	fail := func(address string) int {
		r := w.request("GET", "/v1/me", "", as("nonsense"), from(address))
		return w.send(r).status
	}
	for range httpx.FailureBurst {
		for _, address := range []string{"192.0.2.1:1", "[2001:db8::1]:1", "unix"} {
			if fail(address) != 401 {
				t.Fatalf("%s has failed too often too soon", address)
			}
		}
	}
	for address, want := range map[string]int{
		"192.0.2.1:2": 429, "[::ffff:192.0.2.1]:2": 429, "192.0.2.2:1": 401,
		"[2001:db8::ffff:0:0:1]:1": 429, "[2001:db8:0:0:1::]:7": 429, "[2001:db8:0:1::1]:1": 401, "unix": 429, "": 401,
	} {
		equal(t, fail(address), want, "%q is answered %d", address)
	}
}

func TestRate(t *testing.T) {
	w := newWorld(t, nil)
	w.limit(1000, &httpx.Options{Rate: 3})
	for range 3 {
		w.do("GET", "/v1/me", "").is(200, "")
	}
	for range 5 {
		a := w.do("GET", "/v1/me", "").is(429, "rate_limited").wantHeader("Retry-After", "1")
		if d := a.problem().Detail; !strings.Contains(d, "3 a second") || !strings.Contains(d, "3 at once") {
			a.errorf("%s", d)
		}
	}
	w.do("GET", "/v1/me", "", as(w.other.key)).is(200, "")
	w.now = w.now.Add(time.Second/3 + time.Millisecond)
	w.do("GET", "/v1/me", "").is(200, "").wantHeader("X-RateLimit-Remaining", "996") // refused requests don't count
	w.do("GET", "/v1/me", "").is(429, "rate_limited")

	w.serve(&httpx.Options{Rate: 2.5})
	for i, want := range []int{200, 200, 200, 429} {
		if a := w.do("GET", "/v1/me", ""); a.status != want {
			a.errorf("request %d at a rate of 2.5 : %d, want %d", i, a.status, want)
		}
	}
}
