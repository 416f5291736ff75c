package console_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/console"
	"github.com/formsvc/toolkit/httpx/intake"
)

// newForms returns a world whose pages know the address of a real intake.
func newForms(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, nil)
	forms, err := intake.New(w.svc, &intake.Options{PerVisitor: -1})
	w.must(err)
	mux := http.NewServeMux()
	mux.Handle("/f/", http.StripPrefix("/f", forms))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	w.api = server.URL
	w.serve(nil)
	w.signIn()
	return w
}

// published creates a campaign with a form.
func (w *world) published(in formsvc.CampaignInput) (formsvc.Campaign, string) {
	w.t.Helper()
	in.Form.Enabled = true
	c, err := w.svc.Campaigns.Create(w.t.Context(), w.account.ID, in)
	w.must(err)
	return c, "/campaigns/" + string(c.ID)
}

// snippet returns the text to copy with that name, or "".
func (a *answer) snippet(name string) string {
	for n := range a.page.Descendants() {
		if n.Data == "pre" && attribute(n, "aria-label") == name {
			return textOf(n)
		}
	}
	return ""
}

// everyKind returns a question of every kind whose texts are all the same.
func everyKind(text string) []formsvc.Module {
	name := func(i int) string { return fmt.Sprint(text, i) }
	many := []string{text, "2", "3", "4", "5", "6", "7"}
	return []formsvc.Module{
		{Name: name(0), Label: text, Type: "text", Required: true, Help: text, Placeholder: text, MaxLength: 3},
		{Name: name(1), Label: text, Type: "longtext", Multiple: true, Required: true},
		{Name: name(2), Label: text, Type: "choice", Options: []string{text, "other"}, Required: true},
		{Name: name(3), Label: text, Type: "choice", Options: many, Required: true},
		{Name: name(4), Label: text, Type: "choice", Options: many, Multiple: true, Required: true},
		{Name: name(5), Label: text, Type: "boolean", Required: true},
		{Name: name(6), Label: text, Type: "number", Required: true, Min: "1.5", Max: "2.5", Integer: true},
		{Name: name(7), Label: text, Type: "date", Required: true, Min: "2030-01-02"},
		{Name: name(8), Label: text, Type: "url", Required: true, MaxLength: 8}, {Name: name(9), Label: text, Type: "email", Required: true},
		{Name: name(10), Type: "choice", Options: []string{text}}, {Name: name(11), Type: "number", Max: "-3"},
		{Name: name(15), Label: text, Type: "phone", Required: true}, {Name: name(16), Type: "time", Required: true, Max: "01:00"},
		{Name: name(17), Label: text, Type: "rating", Required: true, MinLabel: text}, {Name: name(18), Type: "scale", MaxLabel: text},
		{Name: name(19), Label: text, Type: "consent", Required: true},
		{Name: name(12), Label: text, Required: true, ShowIf: &formsvc.Condition{Module: name(2), Equals: []string{"other"}}},
		{Name: name(13), Label: text, Required: true, ShowIf: &formsvc.Condition{Module: name(5), Equals: []string{"true"}}},
		{Name: name(14), Label: text, Type: "choice", Options: []string{"a"}, Required: true, ShowIf: &formsvc.Condition{Module: name(5), Equals: []string{"false"}}},
	}
}

// The snippets of a campaign work as they are copied, whatever its texts are.
func TestFormSnippets(t *testing.T) {
	w := newForms(t)
	upload := func(text string, accept ...string) formsvc.Module {
		return formsvc.Module{Name: text + "file", Label: text, Type: "file", Required: true, Multiple: true, Accept: accept}
	}
	for _, text := range []string{
		"plain", `Say "hi"`, `x"><img src=y onerror=alert(1)>`, `it's $(touch pwned) ; touch pwned`, "'; touch pwned; '", "`touch pwned`\n\"$HOME\"!!",
		"</form></pre><script>alert(1)</script>", "@/etc/passwd", "a=b&c%22+d", "-d", "Größe 尺寸 \u202e", "elements", "action",
	} {
		for _, in := range []formsvc.CampaignInput{
			{Modules: everyKind(text)}, {Modules: append(everyKind(text), upload(text)), EmailOptional: true}, {RequireName: true},
			{Form: formsvc.Form{HideName: true}},
			{Modules: []formsvc.Module{
				{Name: "email", Type: "email", Label: text, Required: true}, {Name: "firstName", Label: text, Required: true}, upload(text, ".pdf"), upload(text+"2", "image/*"),
			}},
		} {
			in.Title = text
			c, path := w.published(in)
			page := w.get(path + "/share").is(200)
			for n := range page.page.Descendants() {
				if n.Data == "img" && !strings.HasSuffix(attribute(n, "src"), "/qr.svg") || n.Data == "iframe" || n.Data == "script" && !strings.HasPrefix(attribute(n, "src"), "/admin/console/assets/") {
					t.Errorf("%q: the page has <%s>", text, n.Data)
				}
			}
			before := w.sent(&c)
			checkForm(t, &c, page.snippet("HTML form"))
			checkForm(t, &c, page.snippet("HTML form with a script"))
			if status, body := w.filledIn(&c, page.snippet("HTML form")); status != 303 {
				t.Errorf("%q: the form gets %d: %.600s", text, status, body)
			}
			line := page.snippet("Submit with curl")
			if line == "" && strings.ContainsAny(text, "=\n") && len(c.Modules) > 0 {
				line = "exit 0" // curl can't send such a name with a file
				before--
			}
			w.runs(line)
			if n := w.sent(&c); n != before+2 {
				t.Errorf("%q: %d responses, want %d; %s", text, n, before+2, line)
			}
			frame := fragment(t, page.snippet("Embed the form"))
			if len(frame) != 2 || frame[0].Data != "iframe" || attribute(frame[0], "title") != text || attribute(frame[0], "src") != w.api+"/f/"+c.FormToken || len(frame[0].Attr) != 5 {
				t.Errorf("%q: the frame is %s", text, page.snippet("Embed the form"))
			}
		}
	}
}

// A number of three decimals isn't one of thousands, in whatever language the form is.
func TestSnippetsOfNumbers(t *testing.T) {
	w := newForms(t)
	c, path := w.published(formsvc.CampaignInput{Title: "Maße", Form: formsvc.Form{Language: "de"}, Modules: []formsvc.Module{
		{Name: "less", Type: "number", Min: "-9.125", Max: "-9"}, {Name: "typed", Type: "number", Required: true, Default: []string{"1.234"}},
	}})
	page := w.get(path + "/share").is(200)
	if status, body := w.filledIn(&c, page.snippet("HTML form")); status != 303 {
		t.Errorf("the form gets %d: %s", status, body)
	}
	w.runs(page.snippet("Submit with curl"))
	list := must(w.svc.Responses.List(t.Context(), formsvc.ResponseQuery{AccountID: c.AccountID, CampaignID: c.ID, Page: formsvc.PageQuery{Ascending: true}})).Items
	for i, want := range []string{`{"typed":{"value":["2.000"]}}`, `{"less":{"value":["-9.1250"]},"typed":{"value":["1.2340"]}}`} {
		if len(list) != 2 || list[i].Answers.JSON() != want {
			t.Errorf("%d responses, want the %d. with %s", len(list), i+1, want)
		}
	}
}

func (w *world) sent(c *formsvc.Campaign) int64 {
	now, err := w.svc.Campaigns.Get(w.t.Context(), c.Key())
	w.must(err)
	return now.ResponseCount
}

// runs runs a line in a shell, in an empty directory that stays empty.
func (w *world) runs(line string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "sh", "-c", line)
	cmd.Dir = w.t.TempDir()
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); errors.Is(err, exec.ErrNotFound) || ok && exit.ExitCode() == 127 {
		w.t.Skip("sh or curl is missing")
	}
	left, _ := os.ReadDir(cmd.Dir)
	if err != nil || len(left) > 0 {
		w.t.Errorf("%s: %v, %d files\n%s", line, err, len(left), out)
	}
}

// fragment returns the elements of an HTML text.
func fragment(t *testing.T, text string) (list []*html.Node) {
	t.Helper()
	page := must(html.Parse(strings.NewReader("<!doctype html><title>x</title><body>" + text)))
	for n := range page.Descendants() {
		if n.Type == html.ElementNode && !slices.Contains([]string{"html", "head", "title", "body"}, n.Data) {
			list = append(list, n)
		}
	}
	return list
}

// checkForm checks that a form has the controls of a campaign, each with its label, and nothing else.
func checkForm(t *testing.T, c *formsvc.Campaign, text string) {
	t.Helper()
	labels, kinds, required := map[string]bool{}, map[string]string{}, map[string]bool{}
	for _, n := range fragment(t, text) {
		name := attribute(n, "name")
		_, needed := attributeOf(n, "required")
		switch n.Data {
		case "form":
			if files := slices.ContainsFunc(c.Modules, func(m formsvc.Module) bool { return m.Type == "file" }); files != (attribute(n, "enctype") == "multipart/form-data") {
				t.Errorf("the form has enctype %q", attribute(n, "enctype"))
			}
		case "label":
			labels[attribute(n, "for")] = true
		case "input", "select", "textarea":
			kinds[name], required[name] = strings.Trim(n.Data+" "+attribute(n, "type"), " "), required[name] || needed
			if !labels[attribute(n, "id")] && attribute(n, "aria-label") == "" && n.Parent.Data != "label" {
				t.Errorf("%q has no label", name)
			}
		case "script":
			if n.PrevSibling == nil || len(n.Attr) > 0 {
				t.Errorf("a script: %s", text)
			}
		case "fieldset", "legend", "option", "p", "small", "br", "button":
		default:
			t.Errorf("<%s> in %s", n.Data, text)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "src" {
				t.Errorf("<%s %s>", n.Data, a.Key)
			}
		}
	}
	want := map[string]string{"email": "input email", "firstName": "input text", "lastName": "input text"}
	for _, m := range c.Modules {
		kind := map[formsvc.ModuleType]string{
			"text": "input text", "longtext": "textarea", "boolean": "input radio", "choice": "input radio", "number": "input text",
			"date": "input date", "file": "input file", "url": "input url", "email": "input email",
			"phone": "input tel", "time": "input time", "rating": "input radio", "scale": "input radio", "consent": "input checkbox",
		}[m.Type]
		switch {
		case m.Type == "choice" && m.Multiple:
			kind = "input checkbox"
		case m.Type == "choice" && len(m.Options) > 6:
			kind = "select"
		}
		want[m.Name] = kind
		if needed := m.Required && m.ShowIf == nil && (kind != "input checkbox" || m.Type == "consent"); needed != required[m.Name] && m.Name != "email" {
			t.Errorf("%q is required: %t, want %t", m.Name, required[m.Name], needed)
		}
	}
	if c.Form.HideName {
		delete(want, "firstName")
		delete(want, "lastName")
	}
	if fmt.Sprint(kinds) != fmt.Sprint(want) || required["email"] == c.EmailOptional || required["lastName"] != c.RequireName {
		t.Errorf("the controls are %q, want %q; e-mail required: %t", kinds, want, required["email"])
	}
}

// filledIn sends what a browser sends of a form: what its controls have by default, and something in the required ones.
func (w *world) filledIn(c *formsvc.Campaign, text string) (int, string) {
	w.t.Helper()
	types := map[string]string{
		"email": "ada@example.com", "url": "http://a", "date": "2030-01-02", "tel": "123456", "time": "00:30", "text": "abc", "": "abc",
	}
	var names []string
	values := map[string]string{}
	set := func(name, value string) {
		if !slices.Contains(names, name) || values[name] == "" {
			names, values[name] = append(names, name), value
		}
	}
	var files []string
	for _, n := range fragment(w.t, text) {
		name, kind := attribute(n, "name"), attribute(n, "type")
		_, needed := attributeOf(n, "required")
		conditional := slices.ContainsFunc(c.Modules, func(m formsvc.Module) bool { return m.Name == name && m.ShowIf != nil && m.ShowIf.Equals[0] == "true" })
		switch {
		case kind == "file":
			files = append(files, name)
		case kind == "checkbox", kind == "radio" && needed:
			set(name, attribute(n, "value"))
		case n.Data == "select": // its options follow
		case n.Data == "option":
			set(attribute(n.Parent, "name"), attribute(n, "value"))
		case name != "" && (needed || conditional):
			if attribute(n, "inputmode") == "decimal" {
				set(name, map[bool]string{true: "2,000", false: "2"}[c.Form.Language == "de"])
			}
			set(name, types[kind])
		case name != "" && kind != "radio":
			set(name, attribute(n, "value"))
		}
	}
	form := url.Values{}
	for name, value := range values {
		form.Set(name, value)
	}
	body, contentType := []byte(form.Encode()), "application/x-www-form-urlencoded"
	if len(files) > 0 {
		var b bytes.Buffer
		parts := multipart.NewWriter(&b)
		part := func(name, more, value string) { // as browsers do it (WHATWG HTML, multipart/form-data encoding)
			name = strings.NewReplacer("\n", "%0D%0A", `"`, "%22").Replace(name)
			out, err := parts.CreatePart(map[string][]string{"Content-Disposition": {`form-data; name="` + name + `"` + more}})
			w.must(err)
			_, _ = out.Write([]byte(value))
		}
		for name, value := range values {
			part(name, "", value)
		}
		for i, name := range files {
			part(name, fmt.Sprintf(`; filename="a%s"`, []string{".pdf", ".png"}[i%2]), "x")
		}
		w.must(parts.Close())
		body, contentType = b.Bytes(), parts.FormDataContentType()
	}
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.api+"/f/"+c.FormToken, bytes.NewReader(body))
	w.must(err)
	r.Header.Set("Content-Type", contentType)
	response, err := w.client.Do(r)
	w.must(err)
	reply, err := io.ReadAll(response.Body)
	w.must(errors.Join(err, response.Body.Close()))
	_, problems, _ := strings.Cut(string(reply), "<ul>")
	return response.StatusCode, problems
}

// The page takes the address of a site as a browser shows it, and names it as one that may embed the form.
func TestSiteOfFrame(t *testing.T) {
	w := newSignedIn(t)
	c, path := w.published(formsvc.CampaignInput{Title: "Framed", Form: formsvc.Form{Language: "de", Description: "kept"}})
	for _, x := range []struct {
		typed  string
		status int
		want   string
	}{
		{"https://Example.com/contact?x=1#y", 303, "https://example.com"}, {"shop.example.com/", 303, "https://shop.example.com"},
		{"http://localhost:3000/", 303, "http://localhost:3000"}, {"https://example.com:443", 303, ""}, {"HTTPS://bücher.example:443/x", 303, "https://xn--bcher-kva.example"},
		{"*", 422, ""}, {"null", 422, ""}, {"https://u:p@example.com/", 422, ""}, {"javascript:alert(1.5)", 422, ""}, {"ftp://example.com/", 422, ""},
	} {
		before, err := w.svc.Campaigns.Get(t.Context(), c.Key())
		w.must(err)
		page := w.submit(w.get(path+"/share").is(200), path+"/site", url.Values{"site": {x.typed}}).is(x.status)
		now, err := w.svc.Campaigns.Get(t.Context(), c.Key())
		w.must(err)
		want := before.Form.AllowedOrigins
		if x.want != "" {
			want = append(want, x.want)
		}
		if !slices.Equal(now.Form.AllowedOrigins, want) || now.Form.Language != "de" || now.Form.Description != "kept" {
			t.Errorf("%q: the form has %+v", x.typed, now.Form)
		}
		if x.status == 422 && (page.form(path+"/site").Get("site") != x.typed || !strings.Contains(page.body, `id="wrong-site"`)) {
			t.Errorf("%q isn't refused at its field", x.typed)
		}
	}
}

// A form that was changed meanwhile isn't overwritten: the page shows what is stored beside what was typed.
func TestStaleFormsOverwriteNothing(t *testing.T) {
	w := newSignedIn(t)
	for name, x := range map[string]struct {
		page, path string
		fields     url.Values
		shows      []string
	}{
		"settings": {"/share", "/share", url.Values{"redirectUrl": {"https://typed.example/"}, "language": {"fr"}}, []string{"https://stored.example/", "Stored text", "ar", "https://site.example"}},
		"close":    {"", "/state", nil, []string{"Someone else changed this"}}, "rotate": {"/share", "/rotate", nil, []string{"Someone else changed this"}},
		"unknown": {"/share", "/share", url.Values{"version": {"x"}}, []string{"Nothing was saved"}}, "absent": {"/share", "/share", url.Values{"version": nil}, []string{"Nothing was saved"}},
		"negative": {"/share", "/share", url.Values{"version": {"-1"}}, []string{"Nothing was saved"}}, "zero": {"", "/state", url.Values{"version": {"0"}}, []string{"Someone else"}},
	} {
		c, path := w.published(formsvc.CampaignInput{Title: "Stale"})
		page := w.get(path + x.page)
		in := c.CampaignInput
		in.Form = formsvc.Form{Enabled: true, RedirectURL: "https://stored.example/", Description: "Stored text", Language: "ar", AllowedOrigins: []string{"https://site.example"}}
		stored, err := w.svc.Campaigns.Replace(t.Context(), c.Key(), in)
		w.must(err)
		if name == "settings" { // an error in between doesn't hide the conflict
			page = w.submit(page, path+x.path, url.Values{"redirectUrl": {"nonsense"}}).is(422)
		}
		conflict := w.submit(page, path+x.path, x.fields).is(409).says(x.shows...)
		if now, err := w.svc.Campaigns.Get(t.Context(), c.Key()); err != nil || fmt.Sprint(now) != fmt.Sprint(stored) {
			t.Errorf("%s: now %+v, %v", name, now, err)
		}
		if name != "settings" {
			continue
		}
		if form := conflict.form(path + "/share"); form.Get("redirectUrl") != "https://typed.example/" || form.Get("language") != "fr" {
			t.Errorf("what was typed is gone: %q", form)
		}
		w.submit(conflict, path+"/share", nil).is(303) // now they have seen it
		if now, err := w.svc.Campaigns.Get(t.Context(), c.Key()); err != nil || now.Form.RedirectURL != "https://typed.example/" || now.Form.Language != "fr" {
			t.Errorf("then %+v, %v", now.Form, err)
		}
	}
	c, path := w.published(formsvc.CampaignInput{Title: "Answered"})
	page := w.get(path + "/share")
	w.response(&c, "Ada") // changes no setting
	w.submit(page, path+"/share", url.Values{"language": {"es"}}).is(303)
	w.submit(w.get(path+"/share"), path+"/share", url.Values{"language": {"tlh"}}).is(422).says("must be empty or one of")
	w.submit(w.get(path), path+"/state", nil).is(303)
}

// The console says with the visitor's words whether a form takes responses, with the time.
func TestPhases(t *testing.T) {
	w := newSignedIn(t)
	at := func(d time.Duration) time.Time { return w.clock().Add(d).UTC().Truncate(time.Second) }
	day := 24 * time.Hour
	for _, x := range []struct {
		in   formsvc.CampaignInput
		word string
		at   func(*formsvc.Campaign) time.Time
		open bool
	}{
		{formsvc.CampaignInput{}, "open", nil, true}, {formsvc.CampaignInput{Status: "closed"}, "closed", nil, false},
		{formsvc.CampaignInput{OpensAt: at(day)}, "opens", func(c *formsvc.Campaign) time.Time { return c.OpensAt }, false},
		{formsvc.CampaignInput{OpensAt: at(day), ClosesAt: at(2 * day)}, "opens", func(c *formsvc.Campaign) time.Time { return c.OpensAt }, false},
		{formsvc.CampaignInput{OpensAt: at(-day)}, "open", nil, true}, {formsvc.CampaignInput{OpensAt: at(day), Status: "closed"}, "closed", nil, false},
		{formsvc.CampaignInput{ClosesAt: at(-day)}, "closed since", func(c *formsvc.Campaign) time.Time { return c.ClosesAt }, false},
		{formsvc.CampaignInput{ClosesAt: at(day)}, "open until", func(c *formsvc.Campaign) time.Time { return c.ClosesAt }, true},
		{formsvc.CampaignInput{ClosesAt: at(-day), Status: "closed"}, "closed", nil, false},
	} {
		x.in.Title = "Phases"
		c, path := w.published(x.in)
		want, kind := x.word, "state closed"
		if x.at != nil {
			want += " " + x.at(&c).Format("2006-01-02 15:04:05 UTC")
		}
		if x.open {
			kind = "state open"
		}
		for _, page := range []string{"/campaigns", path, path + "/share"} {
			a, got := w.get(page).is(200), ""
			for n := range a.page.Descendants() {
				if class := attribute(n, "class"); got == "" && strings.HasPrefix(class, "state ") {
					if got = strings.Join(strings.Fields(textOf(n)), " "); class != kind {
						t.Errorf("%s: %q for %q", page, class, want)
					}
				}
			}
			equal(t, got, want, "%s says %q", page)
			if page == path && x.in.Status == "closed" {
				note := "The campaign is open."
				if !c.OpensAt.IsZero() || !c.ClosesAt.IsZero() {
					note = "The campaign takes responses within its opening times, which isn't now."
				}
				w.submit(a, path+"/state", nil).is(303).leadsTo(path).says(note)
				w.submit(w.get(path), path+"/state", nil).is(303).leadsTo(path).says("The campaign is closed.")
			}
			if strings.HasSuffix(page, "/share") && strings.Contains(a.text(), "takes no responses now") == x.open {
				t.Errorf("%s: %s", want, a.text())
			}
		}
	}
}

// Snippets are in the language of the form, with the words of its own page.
func TestFormSnippetsInTheLanguageOfTheForm(t *testing.T) {
	w := newForms(t)
	svc, err := formsvc.New(w.store, &formsvc.Options{Now: w.clock, Languages: []string{"fi", "sv", "it"}})
	w.must(err)
	w.svc = svc
	w.serve(&console.Options{Theme: formsvc.Theme{Texts: map[string]map[string]string{"fi": {"only": "Jos “%s”: %s"}, "en": {"languages.fi": "Suomi"}}}})
	w.signIn()
	for language, want := range map[string]string{"fi": "Jos “Pet”: Hund or Yes", "ja": "「Pet」の回答が次の場合のみ：Hund、または Yes", "": "Only if “Pet” is: Hund or Yes", "ar": "فقط إذا كانت إجابة «Pet» هي: Hund أو Yes", "de": "Nur wenn „Pet“ so beantwortet ist: Hund oder Yes"} {
		_, path := w.published(formsvc.CampaignInput{Title: "x", Form: formsvc.Form{Language: language}, Modules: []formsvc.Module{
			{Name: "a", Label: "Pet", Type: "choice", Options: []string{"Dog", "Yes"}, Labels: map[string]string{"Dog": "Hund"}}, {Name: "b", ShowIf: &formsvc.Condition{Module: "a", Equals: []string{"Dog", "Yes"}}},
		}})
		if text := w.get(path+"/share").has(`lang="fi"`, ">Suomi</option>", ">sv</option>", ">日本語</option>", ">Italiano</option><option value=\"ja").snippet("HTML form"); !strings.Contains(html.UnescapeString(text), want) || !strings.Contains(text, `value="Dog"> Hund<`) || strings.ContainsFunc(text, func(r rune) bool { return r > 126 }) {
			t.Errorf("%q: %s", language, text)
		}
	}
	read := func(name string) (texts map[string]string) {
		b, err := os.ReadFile(name)
		w.must(err)
		w.must(json.Unmarshal(b, &texts))
		return texts
	}
	var own map[string]map[string]string
	b, err := os.ReadFile("templates/snippets.json")
	w.must(err)
	w.must(json.Unmarshal(b, &own))
	for _, language := range formsvc.FormLanguages() {
		page := read("../intake/texts/" + language + ".json")
		for name, text := range own[language] {
			if text != page[name] || len(own[language]) != len(own["en"]) {
				t.Errorf("%s: %s is %q, and %q on the page", language, name, text, page[name])
			}
		}
	}
}
