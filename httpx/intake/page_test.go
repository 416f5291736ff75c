package intake_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/intake"
)

// every returns a campaign with a module of every type.
func every() formsvc.CampaignInput {
	return formsvc.CampaignInput{
		Title: "Helpers", Form: formsvc.Form{Description: "Five minutes.", SuccessMessage: "See you there."},
		Modules: []formsvc.Module{
			{Name: "nick", Label: "Nickname", Required: true, MaxLength: 10, Help: "As on your badge.", Placeholder: "Ada"},
			{Name: "about", Type: formsvc.LongTextModule, MaxLength: 50},
			{Name: "oth/er~1", Type: formsvc.EmailModule},
			{Name: "site", Type: formsvc.URLModule},
			{Name: "age", Type: formsvc.NumberModule},
			{Name: "from", Type: formsvc.DateModule},
			{Name: "car", Label: "A car?", Type: formsvc.BooleanModule, Required: true},
			{Name: "seats", Type: formsvc.NumberModule, Required: true, ShowIf: &formsvc.Condition{Module: "car", Equals: []string{"true"}}},
			{Name: "size", Type: formsvc.ChoiceModule, Options: []string{"S", "M"}},
			{Name: "land", Type: formsvc.ChoiceModule, Options: []string{"A", "B", "C", "D", "E", "F", "G"}, Labels: map[string]string{"A": "Andorra"}},
			{Name: "days", Type: formsvc.ChoiceModule, Options: []string{"Fri", "Sat", "Sun"}, Multiple: true},
			{Name: "langs", Multiple: true},
		},
	}
}

// The page asks every question in its own way, and takes less than 60 KB with its assets.
func TestPageAsksEveryModule(t *testing.T) {
	in := every()
	in.Modules = append(in.Modules, formsvc.Module{Name: "cv", Type: formsvc.FileModule, Required: true, Multiple: true})
	w := newWorld(t, in, nil)
	a := w.get("").is(200).has(
		`<html lang="en" dir="ltr">`, `<h1 dir="auto">Helpers</h1>`, `Five minutes.`,
		`<input type="email" name="email" value="" dir="auto" autocomplete="email" id="q1" required>`,
		`autocomplete="given-name" id="q2" maxlength="200">`, `autocomplete="family-name" id="q3" maxlength="200">`,
		`<label for="q4" dir="auto">Nickname</label>`, `<p class="note" id="q4-help" dir="auto">As on your badge.</p>`,
		`id="q4" maxlength="10" placeholder="Ada" required aria-describedby="q4-help q4-most">`,
		`about <small>(optional)</small>`, "<textarea name=\"about\" rows=\"5\" dir=\"auto\" id=\"q5\" maxlength=\"50\" aria-describedby=\"q5-most\">\n</textarea>",
		`<input type="email" name="oth/er~1"`, `<input type="url" name="site"`, `<input type="text" name="age" value="" dir="auto" inputmode="decimal"`, `<input type="date" name="from"`,
		`<fieldset role="radiogroup" aria-required="true">`, `<input type="radio" name="car" value="true" id="q10" required> <span dir="auto">Yes</span>`,
		`data-if="car" data-equals="[&#34;true&#34;]"`, "Only if “\u2068A car?\u2069” is: \u2068Yes\u2069", `id="q11" aria-required="true"`,
		`<input type="radio" name="size" value="" checked> <span dir="auto">No answer</span>`, `<select name="land" id="q13">`, `<option dir="auto" value="A">Andorra</option>`, `<option dir="auto" value="G">G</option>`,
		`<input type="checkbox" name="days" value="Sat">`, `aria-label="langs 3"`,
		`<input type="file" name="cv" multiple id="q16" required aria-describedby="q16-most">`, `At most 100`, `enctype="multipart/form-data">`,
	)
	if strings.Contains(a.body, "novalidate") {
		t.Error("the browser doesn't check before it uploads files")
	}
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "private, no-cache", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "Set-Cookie": "",
		"Content-Security-Policy": "default-src 'none'; img-src 'self'; style-src 'self' 'sha256-…'; script-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
	} {
		equal(t, regexp.MustCompile(`sha256-[^']+`).ReplaceAllString(a.header.Get(name), "sha256-…"), want, "%s: %q", name)
	}
	size := len(a.body)
	found := regexp.MustCompile(`assets/form\.(js|svg)\?\w+`).FindAllString(a.body, -1)
	equal(t, len(found), 2, "the page loads %q, which are %d", found)
	for _, asset := range found {
		x := w.get("/../" + asset).is(200)
		if size += len(x.body); !strings.Contains(x.header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %v", asset, x.header)
		}
	}
	if size < 5_000 || size > 60_000 {
		t.Errorf("the page takes %d bytes", size)
	}
}

// What a browser sends from the page is stored as typed, without the fields that were left empty.
func TestEveryModuleRoundTrip(t *testing.T) {
	w := newWorld(t, every(), nil)
	token := w.get("").token()
	w.wait(3 * time.Second)
	a := w.post("_page", token, "_honeypot", "", "email", " ada@example.com ", "firstName", "Ada", "lastName", "", "nick", "  Ada é~", "about", "one\r\ntwo",
		"oth/er~1", " a@example.com", "site", "https://example.com/?a=b&c", "age", "36 ", "from", "2026-12-31", "car", "true", "seats", "4",
		"size", "", "land", "G", "days", "Fri", "days", "Sun", "langs", "en", "langs", "", "langs", "de").is(303)
	equal(t, a.header.Get("Location"), w.campaign.FormToken+"/thanks", "redirected to %q")
	w.get("/thanks").is(200).has("See you there.", `href="../assets/form.svg?`).styles()
	cookie := strings.ReplaceAll(a.header.Get("Set-Cookie"), "; ", ";")
	own, _, _ := strings.Cut(cookie, ";")
	if !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "Max-Age=300") || strings.Contains(cookie, "Path") {
		t.Errorf("cookie %q", cookie)
	}
	w.get("/thanks", "Cookie", own).is(200).has("Your reference: " + w.responses()[0].Reference)
	for _, other := range []string{"formsvc-sent=" + strings.Repeat("a", 300), "formsvc-sent=x+Buy", "formsvc-sent=%zz", strings.Replace(own, w.campaign.FormToken, "x", 1)} {
		if got := w.get("/thanks", "Cookie", other).is(200); strings.Contains(got.body, "reference") {
			t.Errorf("with the cookie %.60q the page says\n%s", other, got.body)
		}
	}
	list := w.responses()
	if len(list) != 1 {
		t.Fatalf("%d responses", len(list))
	}
	r := list[0]
	want := `{"nick":{"value":["  Ada é~"]},"about":{"value":["one\ntwo"]},"oth/er~1":{"value":["a@example.com"]},"site":{"value":["https://example.com/?a=b&c"]},` +
		`"age":{"value":["36"]},"from":{"value":["2026-12-31"]},"car":{"value":["true"]},"seats":{"value":["4"]},"land":{"value":["G"]},` +
		`"days":{"value":["Fri","Sun"]},"langs":{"value":["en","de"]}}`
	if got := r.Answers.JSON(); got != want || r.Status != "pending" || (r.User != formsvc.User{Email: "ada@example.com", FirstName: "Ada"}) || w.events() != 1 {
		t.Errorf("%+v with %d events\n%s\n%s", r, w.events(), got, want)
	}
}

// A page with errors has everything that was typed, names all errors at once, and links each to its field.
func TestInvalidFormKeepsWhatWasTyped(t *testing.T) {
	w := newWorld(t, every(), nil)
	token := w.get("").token()
	w.wait(time.Minute)
	typed := []string{"_page", token, "email", "nobody", "firstName", "Ada", "nick", "longer than ten", "about", "1 < 2\r\n&amp;", "oth/er~1", "x@", "site", "example.com", "age", "1,5",
		"from", "31.12.2026", "size", "M", "land", "B", "days", "Sat", "days", "Mon", "langs", "en", "langs", "fr", "colour", "red", "_subject", "ignored"}
	a := w.post(typed...).is(422).has(
		`<title>Error: Helpers</title>`, `role="alert"`, `>`+"\u2068Nickname\u2069"+` – Use at most 10 characters<`, `<li>`+"\u2068colour\u2069"+` – The form has no field of this name</li>`,
		`<option dir="auto" value="B" selected>`, `value="M" checked`, `value="Sat" checked aria-invalid="true"`, `type="text" name="from" value="31.12.2026"`, "\n1 &lt; 2\r\n&amp;amp;</textarea>",
		`value="en" dir="auto" id="q15" aria-label="langs 1"`, `value="fr" dir="auto" id="q15-2"`, `aria-invalid="true" aria-describedby="q4-help q4-most q4-error"`,
	)
	if strings.Contains(a.body, "_subject") || a.token() != token || len(w.responses()) != 0 {
		t.Errorf("token %s, %d responses", a.token(), len(w.responses()))
	}
	ids, names := map[string]bool{}, map[string]string{}
	for _, n := range a.elements() {
		id := attribute(n, "id")
		if id != "" && ids[id] {
			t.Errorf("two elements %s", id)
		}
		ids[id] = true
		names[attribute(n, "name")] += attribute(n, "value")
	}
	for i := 0; i < len(typed); i += 2 {
		if name := typed[i]; !slices.Contains([]string{"colour", "_subject", "about", "days", "land", "size"}, name) && !strings.Contains(names[name], typed[i+1]) {
			t.Errorf("%s is lost: %q", name, names[name])
		}
	}
	var linked []string
	for _, n := range a.elements() {
		for _, id := range strings.Fields(attribute(n, "aria-describedby") + " " + attribute(n, "for")) {
			if !ids[id] {
				t.Errorf("no element %s", id)
			}
		}
		if to, ok := strings.CutPrefix(attribute(n, "href"), "#"); ok {
			linked = append(linked, to)
			if !ids[to] || !ids[to+"-error"] {
				t.Errorf("no field or error for %s", to)
			}
		}
	}
	if got := fmt.Sprint(linked); got != "[q1 q4 q6 q7 q8 q9 q10 q14]" { // seats is hidden; what the page can't show is listed apart
		t.Errorf("errors at %s", got)
	}
}

// A question that other answers hide isn't required, and takes no answer.
func TestHiddenQuestions(t *testing.T) {
	w := newWorld(t, every(), nil)
	user := []string{"email", "ada@example.com", "nick", "Ada"}
	w.post(append(user, "car", "false")...).is(303)
	w.post(append(user, "car", "false", "seats", "4")...).is(422).has(`href="#q11"`, "Leave this empty", `name="seats" value="4"`)
	w.post(append(user, "car", "true")...).is(422).has(`href="#q11"`, "Fill in this field")
	w.post(append(user, "car", "on", "seats", "4")...).is(303) // a checkbox on somebody's own site
	equal(t, len(w.responses()), 2, "%d responses")
}

// A hidden text that became a date while its page was open can be corrected.
func TestHiddenTextBecomesADate(t *testing.T) {
	w := newWorld(t, formsvc.CampaignInput{EmailOptional: true, Modules: []formsvc.Module{{Name: "source", Type: formsvc.TextModule, Hidden: true}}}, nil)
	in, page := w.campaign.CampaignInput, w.get("").token()
	in.Modules = []formsvc.Module{{Name: "source", Type: formsvc.DateModule}}
	_, err := w.svc.Campaigns.Replace(t.Context(), w.campaign.Key(), in)
	w.must(err)
	w.wait(3 * time.Second)
	w.post("_page", page, "source", "mail").is(422).has(`<input type="text" name="source" value="mail"`, `href="#q4"`)
	w.post("_page", page, "source", "2026-03-01").is(303)
}

// A module with the name of a field of the user is asked once and filled from it.
func TestModuleOfTheUser(t *testing.T) {
	w := newWorld(t, formsvc.CampaignInput{EmailOptional: true, Modules: []formsvc.Module{
		{Name: "firstName", Label: "Your first name", Required: true, MaxLength: 40}, {Name: "email", Type: formsvc.EmailModule, Required: true, ShowIf: &formsvc.Condition{Module: "firstName", Equals: []string{"Bo"}}},
	}}, nil)
	a := w.get("").has(`Your first name</label>`, `id="q2" maxlength="40"`, `Email address <small>(optional)`)
	if strings.Count(a.body, `name="firstName"`) != 1 || strings.Count(a.body, `name="email"`) != 1 {
		t.Error(a.body)
	}
	w.post("email", "a@example.com").is(422).has(`href="#q2"`)
	w.post("email", "a@example.com", "firstName", "Ada").is(303)
	r := w.responses()[0]
	if r.User.Email != "a@example.com" || r.User.FirstName != "Ada" || r.Answers.JSON() != `{"firstName":{"value":["Ada"]}}` {
		t.Errorf("%+v", r)
	}
}

// A form asks for names as the campaign says, and takes them anyway.
func TestFormWithoutNames(t *testing.T) {
	w := newWorld(t, formsvc.CampaignInput{EmailOptional: true, Form: formsvc.Form{HideName: true}, Modules: []formsvc.Module{{Name: "a"}}}, nil)
	if a := w.get("").has(`name="email"`, `name="a"`); strings.Contains(a.body, "Name") {
		t.Error(a.body)
	}
	w.post("a", "1", "firstName", "Ada", "email", "nobody").is(422).has(`name="firstName" value="Ada"`)
	w.post("a", "1", "firstName", "Ada").is(303)
	equal(t, w.responses()[0].User.FirstName, "Ada", "first name %q")

	w = newWorld(t, formsvc.CampaignInput{EmailOptional: true, RequireName: true}, nil)
	w.get("").has(`First name</label>`, `Last name</label>`, `Email address <small>(optional)`)
	w.post("firstName", "Ada", "lastName", " ").is(422).has(`href="#q3"`, "Fill in this field")
	w.post("firstName", "Ada", "lastName", "Lovelace").is(303)
}

// A preview shows a campaign that isn't stored, and can't be sent.
func TestPreview(t *testing.T) {
	w := newWorld(t, formsvc.CampaignInput{}, nil)
	h, err := intake.New(w.svc, nil)
	w.must(err)
	recorder := httptest.NewRecorder()
	h.Preview(recorder, httptest.NewRequest("POST", "/console/campaigns", nil), &formsvc.Campaign{CampaignInput: every()}, "/base/f/")
	a := &answer{t, recorder.Code, recorder.Header(), recorder.Body.String()}
	a.is(200).has(`href="/base/f/assets/form.css?`, `name="seats"`)
	if policy := a.header.Get("Content-Security-Policy"); !strings.HasSuffix(policy, "; frame-ancestors 'none'; sandbox allow-scripts") || !strings.Contains(a.body, "<script") {
		t.Errorf("policy %s", policy)
	}
}

// Texts of the owner and of the visitor never become markup or header fields.
func TestHostileTexts(t *testing.T) {
	for _, text := range []string{
		`"><script>alert(1)</script>`, `</textarea><img src=x onerror=alert(1)>`, `' onfocus='alert(1)' autofocus='`, `</title><script>alert(1)</script>`, `{{.}}`, `javascript:alert(1)`, "\u202e<!--",
	} {
		in := formsvc.CampaignInput{Title: text, Form: formsvc.Form{Description: text, SuccessMessage: text, RedirectURL: "https://example.com;script-src'*'/" + text}}
		for i, kind := range []formsvc.ModuleType{"text", "longtext", "email", "url", "number", "date", "boolean", "choice", "choice", "file"} {
			m := formsvc.Module{Name: fmt.Sprint(text, i), Label: text, Help: text, Type: kind, Required: true, Multiple: i == 8}
			if kind == formsvc.ChoiceModule {
				m.Options = []string{text}
			}
			if i < 5 {
				m.Placeholder = text
			}
			if i > 0 {
				m.ShowIf = &formsvc.Condition{Module: fmt.Sprint(text, 0), Equals: []string{text}}
			}
			in.Modules = append(in.Modules, m)
		}
		w := newWorld(t, in, nil)
		fields := []string{"email", text, "firstName", text, "lastName", text, text, text, "_page", text}
		for _, m := range in.Modules {
			fields = append(fields, m.Name, text)
		}
		for _, a := range []*answer{w.get("").is(200), w.get("/thanks").is(200), w.post(fields...).is(422)} {
			a.styles() // which has none but ours
			for _, n := range a.elements() {
				known := slices.Contains(strings.Fields("html head meta title link style script body main div h1 h2 p ul li a form input label fieldset legend small span select option textarea button"), n.Data)
				if !known || n.Data == "script" && (n.FirstChild != nil || !strings.HasPrefix(attribute(n, "src"), "assets/form.js?")) {
					t.Errorf("%q: <%s> %v", text, n.Data, n.Attr)
				}
				for _, x := range n.Attr {
					if strings.HasPrefix(x.Key, "on") || x.Key == "style" || x.Key == "autofocus" || x.Key == "href" && !regexp.MustCompile(`^(#q\d+|(\.\./)?assets/form\.svg\?\w+)$`).MatchString(x.Val) {
						t.Errorf("%q: <%s %s=%q>", text, n.Data, x.Key, x.Val)
					}
				}
			}
			if policy := a.header.Get("Content-Security-Policy"); strings.Count(policy, ";") != 5 || strings.Contains(policy, "form-action") {
				t.Errorf("policy %q", policy)
			}
		}
	}
}

// Every language has the same texts with the same arguments, and a browser gets the one it prefers.
func TestLanguages(t *testing.T) {
	w := newWorld(t, every(), nil)
	read := func(code string) (m map[string]string) {
		b, err := os.ReadFile("texts/" + code + ".json")
		w.must(err)
		w.must(json.Unmarshal(b, &m))
		return m
	}
	var more map[string]map[string]string
	b, err := os.ReadFile("texts/more.json")
	w.must(err)
	w.must(json.Unmarshal(b, &more))
	english, verb := read("en"), regexp.MustCompile(`%(\[\d\])?\d*[ds]`)
	sorted := func(text string) []string {
		list := verb.FindAllString(regexp.MustCompile(`\[\d\]`).ReplaceAllString(text, ""), -1)
		slices.Sort(list) // their order is the language's
		return list
	}
	for header, code := range map[string]string{
		"": "en", "ja": "ja", "zh-TW, zh;q=0.9": "en", "pt-BR": "pt", "sv, TR;q=0.5": "tr", "de-AT,de;q=0.9,en;q=0.8": "de", "fr;q=0.5, es-419;q=0.7": "es", "sv, FR;q=0.1": "fr", "ar-EG": "ar", "de;q=0, en;q=0.1": "en", "de;q=x": "en", "it-CH": "it", "nl": "nl", "pl;q=0.4": "pl", "ja, en": "ja",
	} {
		texts := read(code)
		for name, text := range english {
			if !slices.Equal(sorted(text), sorted(texts[name])) || texts[name] == "" {
				t.Errorf("%s: %s: %q", code, name, texts[name])
			}
		}
		a := w.get("", "Accept-Language", header).is(200).has(`lang="`+code+`" dir="`+texts["dir"]+`"`, ">"+texts["send"]+"</button>")
		if a.header.Get("Vary") != "Accept-Language" || len(texts) != len(english) {
			t.Errorf("%s: %v, %d texts", code, a.header, len(texts))
		}
		for name, text := range more[code] {
			if of, form, _ := strings.Cut(name, ":"); name == "monthsToo" && len(strings.Fields(text))%12 != 0 || form != "" && (texts[of] == "" || strings.Contains(strings.Replace(text, "%d", "", 1), "%")) {
				t.Errorf("%s: %s: %q", code, name, text)
			}
		}
	}
}

// A form begins with the defaults, as a visitor would write them; what was typed wins afterwards.
func TestDefaults(t *testing.T) {
	w := newWorld(t, formsvc.CampaignInput{EmailOptional: true, Form: formsvc.Form{Language: "de"}, Modules: []formsvc.Module{
		{Name: "text", Default: []string{`a "b"`}}, {Name: "n", Type: formsvc.NumberModule, Default: []string{"1.5"}},
		{Name: "pick", Type: formsvc.ChoiceModule, Options: []string{"x", "y"}, Multiple: true, Default: []string{"y"}},
		{Name: "yes", Type: formsvc.BooleanModule, Required: true, Default: []string{"false"}},
		{Name: "firstName", Default: []string{"Ada"}},
	}}, &intake.Options{PerVisitor: -1})
	page := w.get("").has(`value="a &#34;b&#34;"`, `value="1,5"`, `value="Ada"`)
	for _, n := range page.elements() {
		checked := slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "checked" })
		if value := attribute(n, "value"); n.Data == "input" && (value == "y" || value == "false") != checked && value != "" && attribute(n, "name") != "_page" && attribute(n, "type") != "text" {
			t.Errorf("%q is checked: %v", value, checked)
		}
	}
	w.wait(time.Minute)
	w.post("_page", page.token(), "text", "", "n", "zwei", "yes", "true").is(422).has(`value="zwei"`)
	w.post("_page", page.token(), "text", "", "yes", "true").is(303)
	if r := w.responses()[0]; r.Answers.JSON() != `{"text":{"value":[""]},"yes":{"value":["true"]}}` && r.Answers.JSON() != `{"yes":{"value":["true"]}}` {
		t.Error(r.Answers.JSON())
	}
	for _, language := range formsvc.FormLanguages() { // a default that nobody changes is taken as it is
		for _, number := range []string{"1.500", "-12.345", "1.5e3", "0.001", "1234.5", "12345"} {
			w := newWorld(t, formsvc.CampaignInput{EmailOptional: true, Form: formsvc.Form{Language: language}, Modules: []formsvc.Module{{Name: "n", Type: "number", Default: []string{number}}}}, nil)
			page := w.get("").elements()
			shown := attribute(page[slices.IndexFunc(page, func(n *html.Node) bool { return attribute(n, "name") == "n" })], "value")
			w.post("n", shown).is(303)
			if got, _ := w.responses()[0].Answers.Get("n"); got[0] != number && got[0] != number+"0" {
				t.Errorf("%s: %s is shown as %q, and stored as %s", language, number, shown, got)
			}
		}
	}
}
