package intake_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/formsvctest"
	"github.com/formsvc/toolkit/httpx/intake"
)

// files returns a campaign with two questions for files.
func files() formsvc.CampaignInput {
	return formsvc.CampaignInput{EmailOptional: true, Modules: []formsvc.Module{
		{Name: "note"}, {Name: "cv", Type: formsvc.FileModule, Required: true}, {Name: "more", Type: formsvc.FileModule, Multiple: true},
		{Name: "proof", Type: formsvc.FileModule, Required: true, ShowIf: &formsvc.Condition{Module: "note", Equals: []string{"proved"}}},
	}}
}

// stored returns the files of the only response as module/name=content, in the order of their creation.
func (w *world) stored() (list []string) {
	w.t.Helper()
	r := w.responses()
	if len(r) != 1 {
		w.t.Fatalf("%d responses", len(r))
	}
	page, err := w.svc.Files.List(w.t.Context(), r[0].Key(), formsvc.PageQuery{Ascending: true})
	w.must(err)
	for _, f := range page.Items {
		content, _, err := w.blobs.Open(w.t.Context(), formsvc.BlobKey(f.ID), 0, -1)
		w.must(err)
		b, err := io.ReadAll(content)
		w.must(err)
		list = append(list, f.Module+"/"+f.Name+"="+string(b))
	}
	return list
}

// Files are checked with the other fields before anything is stored.
func TestFiles(t *testing.T) {
	w := newWorld(t, files(), &intake.Options{PerVisitor: -1})
	big := strings.Repeat("x", maxFile)
	for _, x := range []struct {
		files []part
		want  []string
	}{
		{nil, []string{`href="#q5"`, "Choose a file<"}},
		{[]part{{"cv", "", ""}}, []string{"Choose a file<"}},
		{[]part{{"cv", "a", "a"}, {"cv", "b", "b"}}, []string{"Give one answer only"}},
		{[]part{{"cv", "a", big + "x"}, {"more", "b", "b"}}, []string{"Choose a file of at most 100\u00a0kB", `href="#q6"`, "Choose your files again"}},
		{[]part{{"cv", "a", "a"}, {"note", "b", "b"}}, []string{"This field takes no file", "Choose your files again"}},
		{[]part{{"cv", "a", "a"}, {"proof", "b", "b"}}, []string{`href="#q7"`, "Leave this empty"}},
		{[]part{{"cv", "a", "a"}, {"nothing", "b", "b"}}, []string{"nothing\u2069 – The form has no field of this name"}},
	} {
		w.upload(x.files, "note", "kept").is(422).has(append(x.want, `value="kept"`)...)
	}
	w.post("note", "n", "cv", "C:\\fake\\cv.pdf").is(422).has("must be sent as multipart/form-data")
	w.upload([]part{{"cv", "a", "a"}}, "note", "proved").is(422).has(`href="#q7"`, "Choose a file<")
	w.upload(slices.Repeat([]part{{"more", "a", "a"}}, 51)).is(413)
	w.upload(nil, "note", strings.Repeat("x", formsvc.MaxAnswersSize+1)).is(413)
	if len(w.responses()) != 0 {
		t.Fatal("a response was created")
	}
	w.upload([]part{{"more", "empty", ""}, {"cv", "../<cv>.txt", big}, {"more", "b", "b"}}, "note", "n").is(303)
	if got := w.stored(); !slices.Equal(got, []string{"more/empty=", "cv/<cv>.txt=" + big, "more/b=b"}) {
		t.Errorf("%.200q", got)
	}
}

// If a file can't be stored, sending the page again completes the response, without a second one and without a file twice.
func TestFailedUploadIsCompleted(t *testing.T) {
	w := newWorld(t, files(), nil)
	three := []part{{"cv", "a", "a"}, {"more", "b", "b"}, {"more", "c", "c"}}
	w.blobs.failures.Store(1)
	a := w.upload(three, "note", "n").is(503).has("Your answers were saved, but not all files", "The file couldn&#39;t be saved", `value="n"`)
	if a.header.Get("Retry-After") == "" || !strings.Contains(w.log.String(), "bucket is down") {
		t.Error(a.header, w.log.String())
	}
	w.upload(three[:2], "_page", a.token(), "note", "n").is(303) // without the third one
	w.upload(three, "_page", a.token(), "note", "n").is(303)
	if got := w.stored(); !slices.Equal(got, []string{"cv/a=a", "more/b=b", "more/c=c"}) || w.events() != 4 {
		t.Errorf("%q, %d events", got, w.events())
	}
}

// Scripts get JSON. Those of foreign origins need the owner's permission; HTML forms don't.
func TestOrigins(t *testing.T) {
	const friend, stranger = "https://friend.example", "https://stranger.example"
	w := newWorld(t, formsvc.CampaignInput{Form: formsvc.Form{AllowedOrigins: []string{friend}}}, &intake.Options{PerVisitor: -1})
	own := strings.TrimSuffix(w.url, "/sub/f/"+w.campaign.FormToken)
	valid := `{"user": {"email": "a@example.com", "firstName": "A"}, "responses": {"b": {"value": ["2", "1"]}, "a": {"value": []}}}`
	created := 0
	for _, x := range []struct {
		origin string
		site   string
		status int
		allow  string
	}{
		{"", "", 201, ""}, {friend, "cross-site", 201, friend}, {own, "", 201, ""}, {own, "same-origin", 201, ""},
		{stranger, "cross-site", 403, ""}, {stranger, "", 403, ""}, {"null", "", 403, ""}, {friend + ".evil.example", "", 403, ""}, {"https://FRIEND.example", "", 403, ""},
	} {
		header := []string{"Origin", x.origin, "Sec-Fetch-Site", x.site}
		if x.origin == "" {
			header = nil
		}
		a := w.json(valid, header...).is(x.status)
		if got := a.header.Get("Access-Control-Allow-Origin"); got != x.allow || !slices.Contains(a.header.Values("Vary"), "Origin") {
			t.Errorf("%s: allowed %q, %v", x.origin, got, a.header)
		}
		w.do(http.MethodPost, w.url, "application/x-www-form-urlencoded", strings.NewReader("email=a%40example.com"), header...).is(303)
		created++
		w.do(http.MethodPost, w.url, "application/x-www-form-urlencoded", strings.NewReader("email=a%40example.com"), append(header, "Accept", "application/json")...).is(x.status)
		if x.status == 201 {
			created += 2
			a.has(`{"reference":"`)
		}
		preflight := w.do(http.MethodOptions, w.url, "", nil, append(header, "Access-Control-Request-Method", "POST")...)
		if ok := x.origin == friend; ok != (preflight.status == 204) || ok != (preflight.header.Get("Access-Control-Allow-Origin") == friend) ||
			ok && !strings.Contains(preflight.header.Get("Access-Control-Allow-Headers"), "X-Requested-With") {
			t.Errorf("preflight from %q: %d %v", x.origin, preflight.status, preflight.header)
		}
	}
	if r := w.responses(); len(r) != created || r[0].Answers.JSON() != `{"b":{"value":["2","1"]},"a":{"value":[]}}` || r[0].User.FirstName != "A" {
		t.Errorf("%d responses, want %d: %+v", len(r), created, r[0])
	}
	w.get("").is(200)
	if policy := w.get("").header.Get("Content-Security-Policy"); !strings.HasSuffix(policy, "; frame-ancestors "+friend) {
		t.Error(policy)
	}
	for body, want := range map[string]string{
		``: "empty_body", `[]`: "not_an_object", `{"user":{"email":"a@example.com"},"responses":{},"status":"x"}`: `"code":"invalid_body","requestId":"R","errors":[{"pointer":"/status","code":"unknown_member"`,
		`{"responses":{"a":{}}}`: `[{"pointer":"/responses/a/value","code":"required","detail":"is required"},{"pointer":"/user","code":"required"`, `{"responses":{}} 1`: "trailing_data",
		`{"responses":{"a":{"value":["1"]},"a":{"value":["1"]}}}`: `[{"pointer":"/responses/a","code":"duplicate_member"`, `{"responses":{"a":{"value":["` + "\xff" + `"]}}}`: `[{"pointer":"/responses/a/value/0","code":"invalid_utf8"`,
		`{"user":{"email":"x"},"responses":{"a":{"value":["` + "\\u0000" + `"]}}}`: `[{"pointer":"/responses/a/value/0","code":"nul_not_allowed"`, `{"user":{"email":null}}`: `[{"pointer":"/user/email","code":"invalid_type"`,
		`{"responses":{},"metadata":{"a":"b"}}`: `[{"pointer":"/metadata","code":"unknown_member"`, `{"responses":{},"metadata":null}`: `[{"pointer":"/metadata","code":"unknown_member"`,
		`{"user":{"email":"x"}}`: `[{"pointer":"/responses","code":"required","detail":"is required"},{"pointer":"/user/email","code":"invalid_email","detail":"must be an e-mail address"}]`,
	} {
		a := w.json(body, "Origin", friend)
		id := a.header.Get("X-Request-Id")
		if a.has(strings.ReplaceAll(want, `"R"`, `"`+id+`"`), `"type":"about:blank"`, `"requestId":"`+id); a.header.Get("Content-Type") != "application/problem+json" || a.status != 400 && a.status != 422 {
			t.Errorf("%s: %d %v", body, a.status, a.header)
		}
	}
	w.do(http.MethodPost, w.url, "text/plain", strings.NewReader(valid)).is(415)
}

// The same content under one page makes one response. Other content makes another.
func TestSentTwice(t *testing.T) {
	w := newWorld(t, formsvc.CampaignInput{EmailOptional: true}, &intake.Options{PerVisitor: -1})
	token := w.get("").token()
	w.wait(time.Minute)
	w.post("_page", token, "a", "1").is(303)
	w.post("_page", token, "a", "1", "b", "").is(303)
	if n := len(w.responses()); n != 1 {
		t.Fatalf("%d responses", n)
	}
	w.must(w.svc.Responses.Delete(t.Context(), w.responses()[0].Key(), nil))
	w.post("_page", token, "a", "1").is(303) // as before
	w.post("_page", token, "a", "2").is(303) // corrected after "back"
	w.post("a", "1").is(303)                 // from somebody's own form
	w.post("a", "1").is(303)
	for range 2 {
		w.json(`{"responses":{"a":{"value":["1"]}}}`, "Idempotency-Key", "k").is(201)
	}
	equal(t, len(w.responses()), 4, "%d responses")
}

// A second click while the first one is being stored waits for it.
func TestSecondClickWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := formsvctest.New(t, &formsvctest.Options{Service: formsvc.Options{
			TraceParent: func(context.Context) string { time.Sleep(time.Second); return "" },
		}})
		campaign := svc.Campaign()
		h, _ := intake.New(svc.Service, nil)
		for range 2 {
			go func() {
				r := httptest.NewRequest(http.MethodPost, "/"+campaign.FormToken, strings.NewReader("a=1&email=ada@example.com&_page=same"))
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != 303 {
					t.Errorf("status %d", w.Code)
				}
			}()
		}
		time.Sleep(5 * time.Second)
		if c, err := svc.Campaigns.Get(t.Context(), campaign.Key()); err != nil || c.ResponseCount != 1 {
			t.Errorf("%d responses, %v", c.ResponseCount, err)
		}
	})
}

// Bots get few places in the store, so that other visitors don't wait for them.
func TestBotsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := formsvctest.New(t, &formsvctest.Options{Service: formsvc.Options{
			TraceParent: func(context.Context) string { time.Sleep(600 * time.Millisecond); return "" },
		}})
		campaign := svc.Campaign()
		h, _ := intake.New(svc.Service, &intake.Options{PerVisitor: -1})
		codes := make(chan string, 12)
		for _, body := range strings.Split(strings.Repeat("_honeypot=x ", 8)+"a=1 a=2 a=3 a=4", " ") {
			go func() {
				r := httptest.NewRequest(http.MethodPost, "/"+campaign.FormToken, strings.NewReader(body+"&email=ada@example.com"))
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				codes <- fmt.Sprint(body[:2], w.Code)
			}()
		}
		got := make(map[string]int)
		for range cap(codes) {
			got[<-codes]++
		}
		if want := map[string]int{"a=303": 4, "_h303": 4, "_h503": 4}; !maps.Equal(got, want) { // the last two pairs would wait too long
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// Spam is held without a sign to the visitor: it raises no event.
func TestBotsAreHeld(t *testing.T) {
	judge := func(_ context.Context, s intake.Submission) (bool, error) {
		if len(s.Response.User.FirstName) > 200 {
			t.Error("what is refused is judged")
		} else if s.Response.Answers[0].Value[0] == "broken" {
			return true, errors.New("judge is down")
		}
		return s.Address == "192.0.2.9" && s.Campaign.Title == "Survey" && s.Header.Get("Content-Type") != "" && s.Response.Answers[0].Value[0] == "pills", nil
	}
	w := newWorld(t, formsvc.CampaignInput{EmailOptional: true}, &intake.Options{Judge: judge, PerVisitor: -1})
	w.address.Store("192.0.2.9")
	quick := w.get("").token()
	w.wait(1999 * time.Millisecond)
	for i, x := range []struct {
		fields []string
		held   bool
	}{
		{[]string{"a", "1", "_honeypot", " "}, true},
		{[]string{"a", "2", "_page", quick}, true},
		{[]string{"a", "pills"}, true},
		{[]string{"a", "broken"}, false},
		{[]string{"a", "3"}, false}, // without a page there is no time
		{[]string{"a", "4", "_page", "nonsense"}, false},
		{[]string{"a", "5", "_page", w.get("").token()}, true},
	} {
		before := w.events()
		a := w.post(x.fields...).is(303)
		list := w.responses()
		r := list[len(list)-1]
		if a.header.Get("Location") != w.campaign.FormToken+"/thanks" || len(list) != i+1 || (r.Held != formsvc.NotHeld) != x.held || (r.Status == "spam") != x.held || (w.events() == before) != x.held {
			t.Errorf("%v: %+v, %d events more", x.fields, r, w.events()-before)
		}
	}
	w.wait(time.Millisecond)
	w.post("a", "6", "_page", quick).is(303)
	if list := w.responses(); list[len(list)-1].Held != formsvc.NotHeld {
		t.Error("held after two seconds")
	}
	if !strings.Contains(w.log.String(), "judge is down") {
		t.Error(w.log.String())
	}
	// The page for correcting a foreign form doesn't count as sent back too quickly.
	fixed := w.post("firstName", strings.Repeat("x", 201), "a", "7").is(422).token()
	w.post("a", "7", "_page", fixed).is(303)
	if list := w.responses(); list[len(list)-1].Held != formsvc.NotHeld {
		t.Error("a correction is held")
	}
}

// An address may send ten forms a minute to a campaign; an IPv6 network counts as one.
func TestPerVisitor(t *testing.T) {
	w := newWorld(t, formsvc.CampaignInput{EmailOptional: true}, nil)
	for i := range 10 {
		w.address.Store(fmt.Sprintf("2001:db8::%d", i))
		w.post("a", "1").is(303)
	}
	a := w.post("a", "1").is(429).has("Wait a minute")
	equal(t, a.header.Get("Retry-After"), "6", "Retry-After %q")
	if a := w.json(`{}`, "Origin", "https://friend.example").is(429).has(`"code":"too_many_requests"`); a.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Error(a.header)
	}
	w.get("").is(200)
	w.address.Store("2001:db8:0:1::1")
	w.post("a", "1").is(303)
	w.address.Store("2001:db8::1")
	w.wait(6 * time.Second)
	w.post("a", "1").is(303)
	w.post("a", "1").is(429)
	campaign, err := w.svc.Campaigns.Create(t.Context(), w.account, formsvc.CampaignInput{Title: "Other", EmailOptional: true, Form: formsvc.Form{Enabled: true}})
	w.must(err)
	w.url = strings.Replace(w.url, w.campaign.FormToken, campaign.FormToken, 1)
	w.post("a", "1").is(303)
}

// Bytes take a place, heads don't. An address never has the last place.
func TestLargeBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var address atomic.Value
		address.Store("192.0.2.1")
		_, post := serving(t, 0, &intake.Options{LargeBodies: 2, PerVisitor: -1, ClientAddress: func(*http.Request) string { return address.Load().(string) }})
		large := "a=" + strings.Repeat("x", 20<<10)
		begin := func(text string) (finish func(status int)) {
			rest, send := io.Pipe()
			w, done := httptest.NewRecorder(), make(chan struct{})
			go func() { post(w, io.MultiReader(strings.NewReader(text), rest)); close(done) }()
			synctest.Wait()
			return func(status int) {
				_ = send.Close()
				if <-done; w.Code != status {
					t.Errorf("status %d, want %d: %s", w.Code, status, w.Body)
				}
				if status == 503 && w.Header().Get("Retry-After") == "" {
					t.Error(w.Header())
				}
			}
		}
		for range 20 { // would take all places, if heads took any
			defer begin("a=" + strings.Repeat("x", 10<<10))(303)
		}
		first := begin(large)
		begin(large)(503)
		begin("a=small")(303)
		address.Store("192.0.2.2")
		begin(large)(303)
		begin(large)(303)
		first(303)
		address.Store("192.0.2.1")
		begin(large)(303)
	})
}

// Pages for what can't be filled in say so, and the token of a form opens nothing else.
func TestFormsThatTakeNothing(t *testing.T) {
	w := newWorld(t, formsvc.CampaignInput{EmailOptional: true, Form: formsvc.Form{RedirectURL: "https://owner.example:8443/done?x=1"}}, nil)
	a := w.post("a", "1", "_next", "https://evil.example", "redirectUrl", "https://evil.example").is(303)
	if to := a.header.Get("Location"); to != "https://owner.example:8443/done?x=1" || !strings.Contains(w.get("").header.Get("Content-Security-Policy"), "frame-ancestors") || strings.Contains(w.get("").header.Get("Content-Security-Policy"), "form-action") {
		t.Errorf("redirected to %s", to)
	}
	for _, path := range []string{"x", "/x", "/thanks/x", "/responses", "/../x", "/../" + strings.Repeat("A", 65), "/../assets/x"} {
		a := w.get(path).is(404).has("There is no form at this address", "assets/form.svg?")
		a.styles()
		if policy := a.header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Error(policy)
		}
	}
	equal(t, w.do(http.MethodPut, w.url, "", nil).is(405).header.Get("Allow"), "GET, HEAD, OPTIONS, POST", "Allow: %s")
	change := func(edit func(in *formsvc.CampaignInput)) {
		in := w.campaign.CampaignInput
		edit(&in)
		_, err := w.svc.Campaigns.Replace(t.Context(), w.campaign.Key(), in)
		w.must(err)
	}
	change(func(in *formsvc.CampaignInput) { in.Status = formsvc.CampaignClosed })
	w.get("").is(409).has("This form is closed")
	w.post("a", "1").is(409).has("This form is closed")
	w.post("email", "nobody").is(409)
	w.json(`{"responses":{}}`).is(409).has(`"code":"campaign_closed"`)
	w.get("/thanks").is(200) // of those who sent it before
	change(func(in *formsvc.CampaignInput) { in.Form.Enabled = false })
	w.post("a", "1").is(409) // as it was a second ago
	w.get("").is(404)
	w.post("a", "1").is(404)
	equal(t, len(w.responses()), 1, "%d responses")
	w.must(w.store.Close())
	w.get("").is(503).has("The form is busy")
	w.json(`{}`).is(503).has(`"code":"unavailable"`)
	if strings.Contains(w.log.String(), w.campaign.FormToken) {
		t.Errorf("the log has the token: %s", w.log.String())
	}
}

// A form that is closed, or isn't there any more, shows what was typed. Other sites get no page with their own words.
func TestTypedTooLate(t *testing.T) {
	for name, edit := range map[string]func(in *formsvc.CampaignInput, now time.Time){
		"Ask Ada": func(in *formsvc.CampaignInput, _ time.Time) { in.Status, in.Form.Texts.Closed = "closed", "Ask Ada" },
		"since":   func(in *formsvc.CampaignInput, now time.Time) { in.ClosesAt = now },
		"opens":   func(in *formsvc.CampaignInput, now time.Time) { in.OpensAt = now.Add(time.Hour) },
		"no form": nil, "at this address": nil,
	} {
		w := newWorld(t, formsvc.CampaignInput{Modules: []formsvc.Module{{Name: "why"}, {Name: "cv", Type: formsvc.FileModule}}}, nil)
		token := w.get("").token()
		w.post("email", "nobody").is(422) // so that the campaign is known
		in, status, code, gone, err := w.campaign.CampaignInput, http.StatusConflict, "campaign_closed", edit == nil, error(nil)
		if !gone {
			edit(&in, *w.now.Load())
			_, err = w.svc.Campaigns.Replace(t.Context(), w.campaign.Key(), in)
		} else if status, code = http.StatusNotFound, "not_found"; name == "no form" {
			err = w.svc.Campaigns.Delete(t.Context(), w.campaign.Key(), nil)
		} else {
			_, err = w.svc.Campaigns.RotateForm(t.Context(), w.campaign.Key())
		}
		w.must(err)
		for known := range 2 { // within a second, only the store knows of the change
			a := w.upload([]part{{"cv", "cv.txt", "x"}}, "_page", token, "email", "a@example.com", "why", "I typed <a> lot").is(status).has("I typed &lt;a&gt; lot", "a@example.com", "t saved")
			if strings.Contains(a.body, "<button>") == gone || known == 1 && !strings.Contains(a.body, name) {
				t.Errorf("%s isn't said, or there is no button, or one without success:\n%s", name, a.body)
			}
			if !gone {
				a.has("Choose your files again", token)
			}
			w.json(`{"user":{"email":"b@example.com"},"responses":{}}`).is(status).has(`"code":"` + code + `"`)
			w.wait(2 * time.Second)
		}
		elsewhere := w.do(http.MethodPost, w.url, "application/x-www-form-urlencoded", strings.NewReader("why=here"), "Origin", "https://evil.example").is(status)
		if strings.Contains(elsewhere.body, "here</textarea>") && gone {
			t.Error("another site puts its words on a page")
		}
		equal(t, w.events(), 0, "%d events")
	}
}

// While the store is away, typed answers stay on the page, also those of a form that isn't known yet. Those that another site sends don't.
func TestTypedWhileAway(t *testing.T) {
	w := newWorld(t, formsvc.CampaignInput{Modules: []formsvc.Module{{Name: "why"}, {Name: "cv", Type: formsvc.FileModule}}}, nil)
	token := w.get("").token()
	w.post("email", "nobody").is(422) // so that the campaign is known
	w.must(w.store.Close())
	for _, says := range []string{"send the form again", "go back and send the form again"} {
		a := w.upload([]part{{"cv", "cv.txt", "x"}}, "_page", token, "email", "a@example.com", "firstName", "Ada", "why", "I typed <a> lot").is(503)
		a.has("I typed &lt;a&gt; lot", "a@example.com", `"Ada"`, says)
		if known := says == "send the form again"; strings.Contains(a.body, "<button>") != known || strings.Contains(a.body, "Choose your files again") != known {
			t.Errorf("a button or a question for files that can't be sent:\n%s", a.body)
		}
		w.wait(2 * time.Second)
	}
	w.json(`{"responses":{}}`).is(503)
	elsewhere := w.do(http.MethodPost, w.url, "application/x-www-form-urlencoded", strings.NewReader("why=here"), "Origin", "https://evil.example").is(503)
	if strings.Contains(elsewhere.body, "here</textarea>") {
		t.Error("another site puts its words on a page")
	}
}

// What a host refuses stays on the page with its words, beside the fault of a question if it names one.
func TestHostRefuses(t *testing.T) {
	var rule error
	w := newWorld(t, formsvc.CampaignInput{EmailOptional: true, Modules: []formsvc.Module{{Name: "iban", Label: "Account"}, {Name: "file", Type: formsvc.FileModule}}},
		&intake.Options{PerVisitor: -1}, func(o *formsvc.Options) {
			o.CheckResponse = func(context.Context, *formsvc.Campaign, *formsvc.Response, *formsvc.Response) error { return rule }
		})
	token := w.get("").token()
	w.wait(time.Minute)
	rule = &formsvc.ValidationError{Fields: []formsvc.FieldError{{Pointer: "/responses/iban/value/0", Code: "invalid_iban", Detail: "must be an IBAN & valid"}}}
	w.post("_page", token, "iban", "typed here").is(422).has("Account\u2069 – must be an IBAN &amp; valid", "typed here")
	w.json(`{"responses":{"iban":{"value":["x"]}}}`).is(422).has("invalid_iban", "/responses/iban/value/0")
	rule = &formsvc.Refusal{Code: "plan_exhausted", Detail: "The plan is used up.", Status: 402}
	w.post("_page", token, "iban", "typed here").is(402).has("The plan is used up.", "typed here")
	w.upload([]part{{"file", "a.txt", "a"}}, "_page", token, "iban", "typed here").is(402).has("The plan is used up.", "typed here")
	w.json(`{"responses":{"iban":{"value":["x"]}}}`).is(402).has("plan_exhausted")
	equal(t, len(w.responses())+w.events(), 0, "%d responses and events")
	rule = nil
	w.post("_page", token, "iban", "typed here").is(303)
}
