package formsvc_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// The token is made when the form is first enabled, works while it is enabled, and stays until it is rotated.
func TestFormToken(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	replace := func(enabled bool) string {
		c = must(w.svc.Campaigns.Replace(w.ctx, c.Key(), formsvc.CampaignInput{Title: "x", Form: formsvc.Form{Enabled: enabled}}))
		found, err := w.svc.Campaigns.ByForm(w.ctx, c.FormToken)
		if enabled != (err == nil && reflect.DeepEqual(found, c)) || !enabled && !errors.Is(err, formsvc.ErrNotFound) {
			t.Errorf("enabled %t: found %+v, %v", enabled, found, err)
		}
		return c.FormToken
	}
	first := c.FormToken + replace(false)
	token := replace(true)
	if first != "" || len(token) < 22 || replace(false) != token || replace(true) != token {
		t.Errorf("the tokens are %q, then %q, then %q", first, token, c.FormToken)
	}
	rotated := must(w.svc.Campaigns.RotateForm(w.ctx, c.Key()))
	if rotated.FormToken == token || len(rotated.FormToken) < 22 || rotated.Version != c.Version+1 || replace(true) != rotated.FormToken {
		t.Errorf("%+v becomes %+v", c, rotated)
	}
	wantError(t, failure(w.svc.Campaigns.ByForm(w.ctx, token)), formsvc.ErrNotFound)
	for token, want := range map[string]error{token: formsvc.ErrNotFound, rotated.FormToken: nil} {
		in := formsvc.ResponseInput{User: formsvc.User{Email: "a@example.com"}, FormToken: token}
		if _, err := w.svc.Responses.Create(w.ctx, c.Key(), in); !errors.Is(err, want) {
			t.Errorf("a response with the token %s: %v, want %v", token, err, want)
		}
	}
	made := must(w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x", Form: formsvc.Form{Enabled: true}}))
	if len(made.FormToken) < 22 || made.FormToken == rotated.FormToken {
		t.Errorf("a new campaign has the token %q", made.FormToken)
	}
}

func TestFormInput(t *testing.T) {
	w := newWorld(t)
	origins := strings.Fields("HTTPS://Example.com http://a:8080 http://[::1]:80")
	for _, x := range []struct {
		form formsvc.Form
		want []string
	}{
		{formsvc.Form{
			Description: strings.Repeat("é", 10_000), SuccessMessage: strings.Repeat("é", 2_000), RedirectURL: "http://a/?b#c", AllowedOrigins: origins, Language: "ar",
		}, nil},
		{formsvc.Form{Description: strings.Repeat("é", 10_001), SuccessMessage: strings.Repeat("é", 2_001), RedirectURL: "javascript:alert(1)", Language: "EN"}, []string{
			"/form/description too_long", "/form/successMessage too_long", "/form/redirectUrl invalid_url", "/form/language invalid_value",
		}},
		{formsvc.Form{RedirectURL: "http://a/" + strings.Repeat("x", 2_040), AllowedOrigins: make([]string, 51)}, []string{
			"/form/redirectUrl too_long", "/form/allowedOrigins too_many",
		}},
		{formsvc.Form{AllowedOrigins: origins, RedirectURL: "http://a/{reference}?r={reference}", Texts: formsvc.FormTexts{Button: strings.Repeat("é", 60), ThanksTitle: "a\nb", Closed: strings.Repeat("é", 2_000)}}, nil},
		{formsvc.Form{RedirectURL: "http://{reference}.a/", Texts: formsvc.FormTexts{Button: strings.Repeat("é", 61), ThanksTitle: " ", Closed: "a\x00", Full: strings.Repeat("é", 2_001)}}, []string{
			"/form/redirectUrl invalid_url", "/form/texts/button too_long", "/form/texts/thanksTitle invalid_value", "/form/texts/closed nul_not_allowed", "/form/texts/full too_long",
		}},
		{formsvc.Form{Prefill: []string{"a", "email", "a", "consent", "file", "gone", ""}}, []string{
			"/form/prefill/0 unknown_module", "/form/prefill/2 duplicate", "/form/prefill/3 unknown_module", "/form/prefill/4 unknown_module", "/form/prefill/5 unknown_module", "/form/prefill/6 unknown_module",
		}},
	} {
		c, err := w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x", Form: x.form})
		wantFaults(t, err, x.want...)
		if want := strings.Fields("https://example.com http://a:8080 http://[::1]"); err == nil && !slices.Equal(c.Form.AllowedOrigins, want) {
			t.Errorf("the origins are %q", c.Form.AllowedOrigins)
		}
	}
	for _, origin := range []string{
		"", "*", "null", "https://*.a", "ftp://a", "a", "https://", "https://a/", "https://a?b", "https://u@a", "https://a;b", "http://a\x00", "http://a b",
	} {
		_, err := w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x", Form: formsvc.Form{AllowedOrigins: []string{"http://a", origin}}})
		wantFaults(t, err, "/form/allowedOrigins/1 invalid_origin")
	}
}

// Origins are stored as browsers send them, so that they are found.
func TestOriginsAreThoseOfBrowsers(t *testing.T) {
	w := newWorld(t)
	for typed, want := range map[string]string{
		"https://example.com:443": "https://example.com", "http://example.com:80": "http://example.com", "https://example.com:80": "https://example.com:80",
		"http://example.com:443": "http://example.com:443", "HTTPS://EXAMPLE.COM:0443": "https://example.com", "https://Bücher.example": "https://xn--bcher-kva.example",
		"https://BÜCHER.example:8443": "https://xn--bcher-kva.example:8443", "https://faß.example": "https://xn--fa-hia.example", "https://ｅxample.com": "https://example.com",
		"https://bu\u0308cher.example": "https://xn--bcher-kva.example", "https://例え。テスト": "https://xn--r8jz45g.xn--zckzah", "https://xn--bcher-kva.example": "https://xn--bcher-kva.example",
		"https://my_shop.example": "https://my_shop.example", "https://a--b.example": "https://a--b.example", "https://example.com.": "https://example.com.",
		"http://[0:0::1]:80": "http://[::1]", "http://[2001:DB8:0:0:0:0:0:1]:8080": "http://[2001:db8::1]:8080", "http://[::ffff:192.0.2.1]": "http://[::ffff:c000:201]",
		"http://127.0.0.1:3000": "http://127.0.0.1:3000", "http://localhost": "http://localhost", "http://a:65535": "http://a:65535",
		"http://[fe80::1%25eth0]": "", "http://127.1": "", "http://0x7f.0.0.1": "", "http://127.0.0.01": "", "http://1": "", "http://a:65536": "", "http://a:": "", "http://a:x": "",
		"https://a/": "", "https://a//": "", "https://a/b": "", "https://a#": "", "https://a?": "", "https://u:p@a": "", "https://a%2eb": "", "https://a b": "", "null": "", "https://*": "",
		"https://[v1.x]": "", "https://a\u00adb": "https://ab", "https://a;b": "", "https://a'b": "", "blob:https://a": "", "//a": "", "https:a": "", "https:/a": "", `https:\\a`: "",
	} {
		c, err := w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x", Form: formsvc.Form{AllowedOrigins: []string{typed}}})
		switch {
		case want == "":
			if !errors.Is(err, formsvc.ErrInvalid) {
				t.Errorf("%q is stored as %q, %v", typed, c.Form.AllowedOrigins, err)
			}
		case err != nil || c.Form.AllowedOrigins[0] != want:
			t.Errorf("%q is stored as %q, %v; want %q", typed, c.Form.AllowedOrigins, err, want)
		}
		if err == nil {
			again, err := w.svc.Campaigns.Replace(w.ctx, c.Key(), c.CampaignInput)
			if err != nil || again.Form.AllowedOrigins[0] != want {
				t.Errorf("%q is stored again as %q, %v", want, again.Form.AllowedOrigins, err)
			}
		}
	}
}

// A condition compares exact values. What it hides isn't required, takes no value, and hides what depends on it.
func TestConditions(t *testing.T) {
	w := newWorld(t)
	module := func(name, of string, values ...string) formsvc.Module {
		return formsvc.Module{Name: name, Required: true, Multiple: true, ShowIf: &formsvc.Condition{Module: of, Equals: values}}
	}
	c := w.campaign(formsvc.Module{Name: "a"}, module("b", "a", "yes", "Yes"), module("c", "b", "1"),
		formsvc.Module{Name: "f", Type: formsvc.FileModule, Required: true})
	for _, x := range []struct {
		answers []formsvc.Answer
		want    []string
	}{
		{nil, nil},
		{[]formsvc.Answer{answer("a", "yes ")}, nil},
		{[]formsvc.Answer{answer("a", "Yes")}, []string{"/responses/b required"}},
		{[]formsvc.Answer{answer("b", "2", "1"), answer("a", "yes")}, []string{"/responses/c required"}},
		{[]formsvc.Answer{answer("b"), answer("c", "x"), answer("f")}, []string{"/responses/c hidden", "/responses/f not_applicable"}},
		{[]formsvc.Answer{answer("b", "1"), answer("c", "x")}, []string{"/responses/b hidden", "/responses/c hidden"}},
		{[]formsvc.Answer{answer("a", "Yes"), answer("b", "1"), answer("c", "x")}, nil},
	} {
		before := w.store.count("CreateResponse")
		wantFaults(t, w.svc.Responses.Check(w.ctx, &c, formsvc.ResponseInput{User: ada(), Answers: x.answers}), x.want...)
		if n := w.store.count("CreateResponse"); n != before {
			t.Errorf("Check stored %d responses", n-before)
		}
		wantFaults(t, failure(w.submit(&c, x.answers...)), x.want...)
	}
	r := w.submitted(&c, answer("a", "Yes"), answer("b", "1"), answer("c", "x"))
	wantFaults(t, failure(w.update(&r, formsvc.ResponsePatch{Answers: []formsvc.AnswerPatch{set("a", "no"), remove("c")}})), "/responses/b hidden")
	w.updated(&r, formsvc.ResponsePatch{Answers: []formsvc.AnswerPatch{set("a", "no"), remove("b"), remove("c")}})
	c.Status = formsvc.CampaignClosed
	wantError(t, w.svc.Responses.Check(w.ctx, &c, formsvc.ResponseInput{User: ada()}), formsvc.ErrCampaignClosed)
	wantFaults(t, w.svc.Responses.Check(w.ctx, &c, formsvc.ResponseInput{}), "/user/email required")
}

// A held response raises nothing until its status changes, which raises its creation. Its first status may be any that the
// workflow knows, unless the workflow says otherwise.
func TestHeldResponse(t *testing.T) {
	w := newFileWorld(t, withWorkflow(review()))
	hold := func() formsvc.Response {
		key := formsvc.CampaignKey{AccountID: w.account, ID: w.response.CampaignID}
		return must(w.svc.Responses.Create(w.ctx, key, formsvc.ResponseInput{User: ada(), Held: formsvc.HeldQuick}))
	}
	w.response = hold()
	r := w.response
	for _, name := range []string{"one.txt", "two.txt"} {
		must(w.svc.Files.Upload(w.ctx, r.Key(), formsvc.FileInput{Name: name, Content: strings.NewReader(name)}))
	}
	must(w.svc.Signatures.Create(w.ctx, r.Key(), formsvc.SignatureInput{Signer: ada()}))
	r = w.updated(&r, formsvc.ResponsePatch{FirstName: new("Augusta")})
	if kept := must(w.svc.Responses.Get(w.ctx, r.Key())); kept != r || r.Status != "spam" || r.Held != formsvc.HeldQuick || r.Version != 2 {
		t.Errorf("it is held as %+v, %+v", r, kept)
	}
	if other := hold(); w.svc.Responses.Delete(w.ctx, other.Key(), nil) != nil || len(w.events()) != 1 { // that of newFileWorld
		t.Errorf("the events are %q", eventTypes(w.events()))
	}
	wantFaults(t, failure(w.update(&r, formsvc.ResponsePatch{Status: new("validated")})), "/status unknown_status")
	if next, _ := w.svc.Responses.Statuses(new(formsvc.Campaign), "spam"); !slices.Equal(next, strings.Fields("accepted archived pending refused review")) {
		t.Errorf("spam may become %q", next)
	}
	r = w.updated(&r, formsvc.ResponsePatch{Status: new("accepted"), LastName: new("King")})
	events := w.parsed()
	if len(events) != 4 || events[0].Type != webhook.ResponseCreated || events[3].Type != webhook.ResponseCompleted || r.Held != formsvc.NotHeld ||
		events[0].Data.Response.User.LastName != "King" || events[0].Data.Response.Status != "accepted" || events[3].Data.PreviousStatus != "spam" {
		t.Errorf("%+v raised %+v", r, events)
	}
	for i, name := range []string{"one.txt", "two.txt"} {
		if e := events[i+1]; e.Type != webhook.FileUploaded || e.Data.File == nil || e.Data.File.Name != name || e.Data.Response.Status != "accepted" {
			t.Errorf("event %d is %+v, want that of %s", i+1, e, name)
		}
	}
	r = w.updated(&r, formsvc.ResponsePatch{FirstName: new("Ada")})
	equalAll(t, eventTypes(w.store.take()), []formsvc.EventType{webhook.ResponseUpdated}, "then it raises %q")
	for _, flow := range []*formsvc.Workflow{
		{Transitions: map[string][]string{"spam": {"ham"}}}, {Transitions: map[string][]string{"ham": {"spam"}}},
		{Statuses: []string{"spam", "ham"}, Transitions: map[string][]string{}},
	} {
		w.svc = w.neighbour(withWorkflow(flow))
		r = hold()
		wantError(t, failure(w.update(&r, formsvc.ResponsePatch{Status: new("pending")})), formsvc.ErrTransition)
	}
}

// The address may fill in questions and the user's fields, and a hidden question has nothing else but its default.
func TestPrefillAndHiddenQuestions(t *testing.T) {
	w := newWorld(t)
	modules := []formsvc.Module{
		{Name: "a", Hidden: true, Default: []string{"x"}}, {Name: "b", Type: "choice", Options: []string{"x"}, Hidden: true, Multiple: true}, {Name: "c", Type: "consent"}, {Name: "f", Type: "file"},
		{Name: "email", Type: "email"}, {Name: "shown", ShowIf: &formsvc.Condition{Module: "a", Equals: []string{"x"}}},
	}
	in := formsvc.CampaignInput{Title: "x", Modules: modules, Form: formsvc.Form{Prefill: []string{"b", "a", "email", "lastName", "shown"}, Texts: formsvc.FormTexts{Full: "Full"}}}
	c, err := w.svc.Campaigns.Create(w.ctx, w.account, in)
	wantFaults(t, err)
	if c, err = w.svc.Campaigns.Get(w.ctx, c.Key()); err != nil || !reflect.DeepEqual(c.Form, in.Form) || !c.Modules[0].Hidden || !slices.Contains(c.Texts(), "lastName") || !slices.Contains(c.Texts(), "Full") {
		t.Errorf("%+v, %v", c, err)
	}
	in.Form.Prefill = []string{"c", "f", "email"}
	in.Modules = append(modules, []formsvc.Module{
		{Name: "n", Type: "number", Hidden: true}, {Name: "firstName", Hidden: true}, {Name: "r", Hidden: true, Required: true},
		{Name: "s", Hidden: true, ShowIf: &formsvc.Condition{Module: "a", Equals: []string{"x"}}},
	}...)
	_, err = w.svc.Campaigns.Create(w.ctx, w.account, in)
	wantFaults(t, err, "/modules/6/hidden not_applicable", "/modules/7/hidden not_applicable", "/modules/8/required not_applicable", "/modules/9/showIf not_applicable",
		"/form/prefill/0 not_applicable", "/form/prefill/1 not_applicable")
	type typed struct {
		Source string `form:"source,hidden" default:"web"`
	}
	if list, err := formsvc.ModulesOf[typed](); err != nil || !list[0].Hidden || list[0].Required {
		t.Errorf("%+v, %v", list, err)
	}
}
