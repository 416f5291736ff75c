package intake_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/intake"
)

// sendAgain sends what a page shows, as a browser does, with other values for some fields.
func (w *world) sendAgain(a *answer, change map[string]string, files ...part) *answer {
	w.t.Helper()
	var fields []string
	for _, n := range a.elements() {
		name, value := attribute(n, "name"), attribute(n, "value")
		if n.Data == "textarea" && n.FirstChild != nil {
			value = n.FirstChild.Data
		}
		choice := attribute(n, "type") == "radio" || attribute(n, "type") == "checkbox"
		if name == "" || n.Data == "meta" || n.Data == "select" || attribute(n, "type") == "file" || choice && !slices.ContainsFunc(n.Attr, func(x html.Attribute) bool { return x.Key == "checked" }) {
			continue
		}
		if to, ok := change[name]; ok {
			value = to
		}
		fields = append(fields, name, value)
	}
	if to, ok := change["_without"]; ok {
		fields = append(fields, "_without", to)
	}
	return w.upload(files, fields...)
}

// stands returns the answers of all responses.
func (w *world) stands() (list []string) {
	w.t.Helper()
	for _, r := range w.responses() {
		list = append(list, r.User.Email+r.Answers.JSON())
	}
	return list
}

// A campaign without questions keeps what a form on somebody's own site sent over an error.
func TestErrorsKeepUnknownFields(t *testing.T) {
	w := newWorld(t, formsvc.CampaignInput{}, nil)
	a := w.post("email", "nonsense", "message", "Long <text>\r\nof two lines", "days", "Fri", "days", "Sat", "__proto__", "x", "_subject", "ignored", "blank", "").is(422)
	a = w.sendAgain(a, map[string]string{"email": "still wrong"}).is(422)
	w.sendAgain(a, map[string]string{"email": "ada@example.com"}).is(303)
	want := `ada@example.com{"message":{"value":["Long <text>\nof two lines"]},"days":{"value":["Fri","Sat"]}}`
	if got := w.stands(); !slices.Equal(got, []string{want}) {
		t.Errorf("%q, want %q", got, want)
	}
	// A question that is gone since the page was shown: its answer is shown, and no obstacle.
	w = newWorld(t, formsvc.CampaignInput{Modules: []formsvc.Module{{Name: "a"}}}, nil)
	a = w.post("email", "ada@example.com", "a", "1", "old", "Long text").is(422).has("The form has no field of this name", `<textarea name=""`, "Long text</textarea>")
	w.sendAgain(a, nil).is(303)
	w = newWorld(t, formsvc.CampaignInput{}, nil)
	w.post("email", "a@example.com", "email", "b@example.com").is(422).has(`href="#q1"`, "Give one answer only")
	w.upload([]part{{"cv", "a", "a"}}, "email", "a@example.com", "m", "kept").is(422).has("cv\u2069 – This field takes no file", "kept</textarea>")
	names := []string{"email", "a@example.com"}
	for i := range 50 {
		names = append(names, fmt.Sprint("n", i), "x")
	}
	w.post(names...).is(303)
	w.post(append(names, "n50", "x")...).is(422).has("A form may have at most 50 fields", `name="n50"`)
	text, _ := json.Marshal(w.responses()[0].Answers.JSON())
	equal(t, strings.Count(string(text), "value"), 50, "%d answers")
}

// A question whose file was lost with an error says so until it has a file, or the visitor does without.
func TestLostFilesAreAskedFor(t *testing.T) {
	w := newWorld(t, files(), &intake.Options{PerVisitor: -1})
	const note = "Choose your files again"
	cv := part{"cv", "a", "a"}
	first := func() *answer {
		return w.upload([]part{cv, {"more", "b", "b"}}, "email", "nobody", "note", "n").is(422).has(note, `name="_files" value="cv"`, `name="_files" value="more"`, `name="_without" value="more"`)
	}
	a := w.sendAgain(first(), nil, cv).is(422).has(note, `name="_files" value="more"`) // another error remains
	a = w.sendAgain(a, map[string]string{"email": "ada@example.com"}, cv).is(422).has(note)
	w.sendAgain(a, nil, cv, part{"more", "c", "c"}).is(303)
	if got := w.stored(); !slices.Equal(got, []string{"cv/a=a", "more/c=c"}) {
		t.Errorf("%q", got)
	}
	w.sendAgain(first(), map[string]string{"email": "bob@example.com", "_without": "more"}, cv).is(303)
	w.sendAgain(first(), map[string]string{"email": "bob@example.com", "_without": "cv"}).is(422).has(`href="#q5"`) // is required
	a = w.upload([]part{cv, {"proof", "p", "p"}}, "email", "nobody", "note", "proved").is(422).has(`name="_files" value="proof"`)
	w.sendAgain(a, map[string]string{"email": "eve@example.com", "note": "n"}, cv).is(303) // the question is hidden now
	equal(t, len(w.responses()), 3, "%d responses")
}

// A form without a place for its files keeps its texts.
func TestFilesWithoutSpace(t *testing.T) {
	w := newWorld(t, files(), &intake.Options{PerVisitor: -1, TempBytes: 150_000})
	cv := part{"cv", "a", strings.Repeat("x", 60_000)}
	w.upload([]part{cv}, "note", "one").is(303)
	w.upload([]part{cv}, "note", "two").is(303) // the bytes of the first one are free again
	w.upload([]part{{"cv", "a", strings.Repeat("x", 90_000)}}, "note", "kept").is(503).has("couldn&#39;t be saved", `value="kept"`, "Choose your files again")
	t.Setenv("TMPDIR", "/nonexistent")
	a := w.upload([]part{cv, {"more", "b", "b"}}, "note", "kept").is(503).has(`value="kept"`, "Choose your files again", `name="_files" value="more"`)
	if a.header.Get("Retry-After") == "" {
		t.Error(a.header)
	}
	w.post("note", "no files").is(422)
	if _, err := intake.New(w.svc, nil); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("New: %v", err)
	}
}

// Files are a part of what makes two posts the same.
func TestSameFormSameFiles(t *testing.T) {
	w := newWorld(t, files(), &intake.Options{PerVisitor: -1})
	page := w.get("").token()
	w.wait(time.Minute)
	send := func(email string, files ...part) { w.upload(files, "_page", page, "email", email, "note", "n").is(303) }
	a, b, m := part{"cv", "a", "a"}, part{"cv", "a", "b"}, part{"more", "a", "a"}
	for i, x := range []struct {
		email string
		files []part
		want  int
	}{
		{"a@example.com", []part{a}, 1}, {"a@example.com", []part{a}, 1}, {"a@example.com", []part{b}, 2}, {"a@example.com", []part{a, m}, 3}, {"a@example.com", []part{a, m}, 3},
		{"a@example.com", []part{{"cv", "other", "a"}}, 4}, {"b@example.com", []part{a}, 5}, {"a@example.com", []part{a}, 5},
	} {
		if send(x.email, x.files...); len(w.responses()) != x.want {
			t.Errorf("%d: %d responses, want %d", i, len(w.responses()), x.want)
		}
	}
	w.upload([]part{a}, "_page", page, "email", "a@example.com", "note", "n", "firstName", "A").is(303)
	w.upload([]part{a}, "_page", page, "email", "a@example.com", "note", "n", "lastName", "A").is(303)
	send("a@example.com", part{"cv", "a", "1"}, part{"more", "b", "2"})
	send("a@example.com", part{"more", "a", "1"}, part{"cv", "b", "2"})
	equal(t, len(w.responses()), 9, "%d responses")
	for i, r := range w.responses()[:5] {
		page, err := w.svc.Files.List(t.Context(), r.Key(), formsvc.PageQuery{})
		if w.must(err); len(page.Items) != []int{1, 1, 2, 1, 1}[i] {
			t.Errorf("response %d has %d files", i, len(page.Items))
		}
	}
}

// After a failed upload, another file for a question that has one makes another response.
func TestFailedUploadWithOtherFile(t *testing.T) {
	w := newWorld(t, files(), nil)
	w.blobs.skip.Store(2) // the mark of the store, and the first file
	w.blobs.failures.Store(1)
	a := w.upload([]part{{"cv", "a", "a"}, {"more", "b", "b"}}, "note", "n").is(503)
	w.upload([]part{{"cv", "a", "other"}, {"more", "b", "b"}}, "_page", a.token(), "note", "n").is(303)
	w.upload([]part{{"cv", "a", "a"}, {"more", "b", "b"}}, "_page", a.token(), "note", "n").is(303)
	for _, r := range w.responses() {
		page, err := w.svc.Files.List(t.Context(), r.Key(), formsvc.PageQuery{})
		if w.must(err); len(page.Items) != 2 {
			t.Errorf("%d files", len(page.Items))
		}
	}
	equal(t, len(w.responses()), 2, "%d responses")
	w.post("_page", a.token(), "note", "other").is(422)
}

// Numbers and dates are read as the form's language writes them, and stored in one form. JSON is strict.
func TestWrittenNumbersAndDates(t *testing.T) {
	number, date, clock := formsvc.Module{Name: "x", Type: formsvc.NumberModule}, formsvc.Module{Name: "x", Type: formsvc.DateModule}, formsvc.Module{Name: "x", Type: formsvc.TimeModule}
	whole := formsvc.Module{Name: "x", Type: formsvc.NumberModule, Integer: true}
	for _, x := range []struct {
		languages string
		module    formsvc.Module
		typed     string
		want      string // "": an error; with a blank: two readings that are asked for
	}{
		{"de fr es ar", number, "0,5", "0.5"}, {"en de fr es ar", number, "0.5", "0.5"}, {"en", number, "0,5", ""}, {"en de fr es ar", number, " .5 ", "0.5"}, {"de fr es", number, ",5", "0.5"},
		{"en de fr es ar", number, "05", "5"}, {"en de", number, "5.", "5"}, {"de", number, "-1,50", "-1.50"}, {"en", number, "−5", "-5"}, {"en de", number, "+5", "5"},
		{"de es", number, "1.234,5", "1234.5"}, {"en", number, "1,234.5", "1234.5"}, {"fr", number, "1\u202f234,5", "1234.5"}, {"fr", number, "1\u00a0234", "1234"}, {"en de fr es ar", number, "1 234 567", "1234567"},
		{"de", number, "1’234.5", "1234.5"}, {"de es", number, "1.234.567", "1234567"}, {"en", number, "12,34,567", "1234567"}, {"en de fr es ar", number, "0.123", "0.123"}, {"de", number, "0,123", "0.123"},
		{"ar", number, "١٢٫٥", "12.5"}, {"ar en", number, "١٬٢٣٤٫٥", "1234.5"}, {"ar", number, "۱۲", "12"}, {"de", number, "１２", "12"}, {"ar", number, "\u200f-١٢", "-12"},
		{"en", number, "1.234", "1.234"}, {"de fr", number, "1,234", "1.234"}, {"de fr", number, "1.234", "1234 1,234"}, {"en", number, "1,234", "1234 1.234"}, {"es", number, "1.234", "1234 1,2340"}, {"es", number, "1,234", "1234 1,2340"},
		{"ar", number, "1,234", "1234 1٫234"}, {"de", number, "-1.234", "-1234 -1,234"}, {"es", number, "1,2340", "1.2340"}, {"ar", number, "1٫234", "1.234"}, {"en de", number, "1e3", "1e3"},
		{"en de", number, "12 Euro", ""}, {"en de", number, "1.2.3", ""}, {"en de", number, "1 2", ""}, {"en de", number, "-", ""}, {"en de", number, ".", ""}, {"de", number, "1,234,5", ""}, {"de", number, "gd1", ""},
		{"en de ar", date, "2026-12-31", "2026-12-31"}, {"de fr es ar", date, "31.12.2026", "2026-12-31"}, {"fr es ar", date, "1/2/2026", "2026-02-01"}, {"ar", date, "٣١/١٢/٢٠٢٦", "2026-12-31"}, {"de", date, "1. 2. 2026", "2026-02-01"},
		{"en", date, "12/31/2026", "2026-12-31"}, {"en", date, "31/12/2026", "2026-12-31"}, {"en", date, "5/5/2026", "2026-05-05"}, {"en", date, "3/4/2026", "2026-04-03 2026-03-04"},
		{"en de", date, "30.02.2026", ""}, {"de", date, "31.12.26", ""}, {"de", date, "31/12.2026", ""},
		{"it pt nl pl tr", number, "1.234,5", "1234.5"}, {"it pt nl pl tr", number, "1 234,5", "1234.5"}, {"ja en it pl", number, "1'234.5", "1234.5"}, {"ja tr ar pl", number, "١٬٢٣٤٫٥", "1234.5"}, {"ja it", number, "３．５", "3.5"},
		{"ja", number, "１，２３４．５", "1234.5"}, {"ja", number, "1.234", "1.234"}, {"ja", number, "0,5", ""}, {"it pt nl pl tr", number, "1.234", "1234 1,234"}, {"ja", number, "1,234", "1234 1.234"}, {"en ja pl", number, "-0", "0"},
		{"pl", number, "-0,0", "0.0"}, {"ja", number, "－５", "-5"}, {"pt", number, "1.23.456", ""}, {"ja", number, "三", ""}, {"de", number, "5²", ""}, {"de", number, "d1", ""}, {"tr", number, "12,34,567", "1234567"},
		{"ja", date, "2026年11月29日", "2026-11-29"}, {"ja en", date, "２０２６／１／５", "2026-01-05"}, {"ja", date, "2026 年 1 月 5 日", "2026-01-05"}, {"ja", date, "3/4/2026", "2026-04-03 2026-03-04"}, {"ja", date, "令和8年11月29日", ""}, {"ja", date, "26年11月29日", ""},
		{"pt", date, "29 de novembro de 2026", "2026-11-29"}, {"pt", date, "1º de março de 2026", "2026-03-01"}, {"it", date, "1° Gennaio 2026", "2026-01-01"}, {"it nl", date, "29-11-2026", "2026-11-29"}, {"pl", date, "29 listopada 2026 r.", "2026-11-29"},
		{"pl", date, "29 LISTOPAD 2026", "2026-11-29"}, {"pl", date, "5 paź 2026", "2026-10-05"}, {"nl", date, "1 mrt 2026", "2026-03-01"}, {"tr", date, "29 KASIM 2026", "2026-11-29"}, {"tr", date, "29 kasim 2026", "2026-11-29"}, {"tr", date, "1 Ağustos 2026", "2026-08-01"},
		{"fr", date, "1er août 2026", "2026-08-01"}, {"fr", date, "1 jui 2026", ""}, {"en", date, "November 29, 2026", "2026-11-29"}, {"en", date, "Dec 1st 2026", "2026-12-01"}, {"ar", date, "٢٩ نوفمبر ٢٠٢٦", "2026-11-29"}, {"ar", date, "٢٩ تشرين الثاني ٢٠٢٦", "2026-11-29"},
		{"es", date, "29 de setiembre del 2026", "2026-09-29"}, {"de", date, "29. Jänner 2026", "2026-01-29"}, {"it", date, "29 febbraio 2028", "2028-02-29"}, {"it", date, "29 febbraio 2026", ""}, {"en", date, "29 November 26", ""}, {"en", date, "29 2026", ""},
		{"it", date, "29 November 2026", ""}, {"en", date, "May June 1 2026", ""}, {"it pl", clock, "9.05", "09:05"}, {"fr pt", clock, "14h30", "14:30"}, {"ja", clock, "１４時３０分", "14:30"}, {"ar", clock, "٩:٠٥", "09:05"}, {"en", clock, "25:00", ""}, {"en", clock, "13:30 pm", ""},
		{"en es", clock, "2:30 p. m.", "14:30"}, {"en", clock, "12:05 AM", "00:05"}, {"en", clock, "12pm", "12:00"}, {"en", clock, "0:05 am", "00:05"}, {"en", clock, "14", ""}, {"de", clock, "14.30 Uhr", "14:30"}, {"fr pt", clock, "14 h", "14:00"},
		{"nl", clock, "14u30", "14:30"}, {"pl", clock, "godz. 14.30", "14:30"}, {"ja", clock, "午後2時30分", "14:30"}, {"ja", clock, "午前9時", "09:00"}, {"ar", clock, "٢:٣٠ م", "14:30"}, {"ar", clock, "9:05 صباحًا", "09:05"}, {"de", clock, "14:30 Euro", ""},
		{"de es pt", whole, "1.000", "1000"}, {"ja en ar es", whole, "1,000", "1000"}, {"en", whole, "2.5", ""}, {"pl", date, "29.11.2026 r.", "2026-11-29"}, {"ja", date, "2026/11/29（日）", "2026-11-29"}, {"pl", date, "niedziela, 29 listopada 2026", ""},
	} {
		for _, language := range strings.Fields(x.languages) {
			w := newWorld(t, formsvc.CampaignInput{EmailOptional: true, Form: formsvc.Form{Language: language}, Modules: []formsvc.Module{x.module}}, nil)
			a, want := w.post("x", x.typed), strings.Fields(x.want)
			switch got := w.stands(); {
			case len(want) == 1 && (a.status != 303 || got[0] != `{"x":{"value":["`+x.want+`"]}}`):
				t.Errorf("%s: %q: %d, %q, want %q", language, x.typed, a.status, got, x.want)
			case len(want) != 1 && (a.status != 422 || len(got) > 0):
				t.Errorf("%s: %q is taken: %d, %q", language, x.typed, a.status, got)
			case len(want) == 2:
				a.has("\u2068"+want[0]+"\u2069", "\u2068"+want[1]+"\u2069", `value="`+x.typed+`"`)
			}
		}
	}
	w := newWorld(t, formsvc.CampaignInput{EmailOptional: true, Form: formsvc.Form{Language: "de"}, Modules: []formsvc.Module{number}}, nil)
	w.json(`{"responses":{"x":{"value":["0,5"]}}}`).is(422)
	w.json(`{"responses":{"x":{"value":["1.234"]}}}`, "Content-Type", "application/json; charset=utf-8").is(201).has("reference")
}

// A condition on a number holds for the number, however it was written.
func TestConditionOnWrittenNumber(t *testing.T) {
	w := newWorld(t, formsvc.CampaignInput{EmailOptional: true, Form: formsvc.Form{Language: "de"}, Modules: []formsvc.Module{
		{Name: "n", Type: formsvc.NumberModule}, {Name: "why", Required: true, ShowIf: &formsvc.Condition{Module: "n", Equals: []string{"0.5"}}},
	}}, nil)
	w.get("").has(`data-equals="[&#34;0.5&#34;]" data-number=",">`)
	w.post("n", "0,5").is(422).has(`href="#q5"`)
	w.post("n", "0,5", "why", "x").is(303)
}

// Names that forms, objects or the page itself use change nothing.
func TestAnyName(t *testing.T) {
	names := []string{
		"elements", "action", "submit", "method", "length", "id", "name", "__proto__", "constructor", "hasOwnProperty", "querySelector", "addEventListener", "dataset", "setAttribute",
		"_page", "_honeypot", "_files", "_without", "_x", `with "quotes"`, "two\nlines", "100%22", "<b>", "a&b=c", "", " x ", "..", "q1",
	}
	in := formsvc.CampaignInput{EmailOptional: true}
	for _, name := range names {
		if name != "" {
			in.Modules = append(in.Modules, formsvc.Module{Name: name})
		}
	}
	w := newWorld(t, in, &intake.Options{PerVisitor: -1})
	a := w.get("").is(200)
	if strings.Contains(a.body, `type="hidden" name="_page"`) || strings.Contains(a.body, `class="trap"`) {
		t.Error(a.body)
	}
	var fields []string
	var want []string
	for i, name := range slices.DeleteFunc(names, func(s string) bool { return s == "" }) {
		fields = append(fields, strings.ReplaceAll(name, "\n", "\r\n"), fmt.Sprint("v", i))
		want = append(want, fmt.Sprint("v", i))
	}
	w.post(fields...).is(303)
	for i := 0; i < len(fields); i += 2 { // as browsers write names in multipart forms
		fields[i] = strings.NewReplacer(`"`, "%22", "\r\n", "%0D%0A").Replace(fields[i])
	}
	w.upload(nil, fields...).is(303)
	for _, r := range w.responses() {
		list, err := r.Answers.List()
		w.must(err)
		var got []string
		for _, x := range list {
			got = append(got, x.Value...)
		}
		if !slices.Equal(got, want) || r.Held != formsvc.NotHeld {
			t.Errorf("%q %s", got, r.Held)
		}
	}
}

// A repeated reader has one byte without end.
type repeated byte

func (r repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

// A form beyond a limit is told which one, and keeps what fits.
func TestLimitsAreNamed(t *testing.T) {
	in := files()
	in.Modules = append(in.Modules, formsvc.Module{Name: "many", Multiple: true})
	w := newWorld(t, in, &intake.Options{PerVisitor: -1})
	w.post("note", "kept", "many", strings.Repeat("x", 4_300_000)).is(413).has("at most 4.2\u00a0MB together", `value="kept"`, "Not everything was read")
	w.upload(nil, "note", "kept", "many", strings.Repeat("x", 4_300_000)).is(413).has("at most 4.2\u00a0MB together", `value="kept"`)
	w.upload([]part{{"cv", "a", "a"}}, "note", "kept", strings.Repeat("n", 9000), "x").is(413).has("at most 8.2\u00a0kB together", `value="kept"`)
	var names []string
	for i := range 540 {
		names = append(names, fmt.Sprint(i, strings.Repeat("n", 7800)), "")
	}
	w.upload(nil, names...).is(413).has("at most 4.2\u00a0MB together")
	r := httptest.NewRequest("POST", w.url, nil)
	endless := &io.LimitedReader{R: io.MultiReader(strings.NewReader("--x\r\nX: "), repeated('x')), N: 4_000_000}
	r.Body = io.NopCloser(endless)
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	recorder := httptest.NewRecorder()
	h, err := intake.New(w.svc, nil)
	w.must(err)
	r.URL.Path = "/" + w.campaign.FormToken
	if h.ServeHTTP(recorder, r); recorder.Code != 413 || endless.N < 3_900_000 {
		t.Errorf("status %d, %d bytes unread", recorder.Code, endless.N)
	}
	w.upload(slices.Repeat([]part{{"more", "a", "a"}}, 51), "note", "kept").is(413).has("at most 50 files", `value="kept"`)
	w.post(strings.Split(strings.Repeat("note,b,", 5001), ",")[:10002]...).is(413).has("at most 5000 fields", `value="b"`)
	w.json(`{"responses":{"note":{"value":["`+strings.Repeat("x", 4_300_000)+`"]}}}`).is(413).has(`"code":"body_too_large"`, "at most 4.2")
	w.upload([]part{{"cv", "a", strings.Repeat("x", maxFile+1)}}, "note", "kept").is(422).has("at most 100\u00a0kB", `value="kept"`)
	w.upload([]part{{"cv", "a", strings.Repeat("x", 3*maxFile+formsvc.MaxAnswersSize)}}, "note", "kept").is(413).has("The form and its files may have at most 4.4\u00a0MB together")
	w.upload(nil, "note", "x", "many", strings.Repeat("\x01", 3_000_000)).is(422).has("at most 4.2\u00a0MB together", `value="x"`)
	// Files for no question are skipped while they are small, so that the fields after them are kept.
	a := w.upload([]part{{"note", "a", strings.Repeat("x", 1<<20)}}, "many", "kept").is(422).has(`value="kept"`, "takes no file", "Not everything was read")
	if len(w.responses()) > 0 || strings.Contains(a.body, `href="#q5"`) {
		t.Error(a.body)
	}
}

// What strangers send makes no page of many times its size.
func TestPagesAreBounded(t *testing.T) {
	w := newWorld(t, formsvc.CampaignInput{Modules: []formsvc.Module{{Name: "q", Label: strings.Repeat("'", 1000), Multiple: true}, {Name: "url", Type: formsvc.URLModule}}}, nil)
	a := w.do(http.MethodPost, w.url, "application/x-www-form-urlencoded", strings.NewReader(strings.Repeat("q=1&", 4090))).is(422).has("q4")
	if n := strings.Count(a.body, `name="q"`); n != 100 || len(a.body) > 100_000 {
		t.Errorf("%d inputs in %d bytes", n, len(a.body))
	}
	a.has("Not everything that you entered can be shown again")
	a = w.upload(nil, "q", "kept", "url", strings.Repeat("'", formsvc.MaxAnswersSize-1000)).is(422).has(`value="kept"`)
	if len(a.body) > 100_000 {
		t.Errorf("%d bytes", len(a.body))
	}
	text := strings.Repeat("text ", 200_000)
	a = w.post("q", text, "url", text, "url", text, "email", "nobody").is(422).has(text)
	equal(t, strings.Count(a.body, text), 2, "%d texts of 1 MB are shown")

	options := make([]string, 1000)
	for i := range options {
		options[i] = fmt.Sprint("option ", i)
	}
	for n, status := range map[int]int{10: 200, 100: 500} {
		var in formsvc.CampaignInput
		for i := range n {
			in.Modules = append(in.Modules, formsvc.Module{Name: fmt.Sprint(i), Type: formsvc.ChoiceModule, Options: options})
		}
		w := newWorld(t, in, nil)
		first, second := w.get("").is(status), w.get("").is(status)
		if status == 500 {
			second.has("This form can&#39;t be shown")
		} else if first.token() == second.token() || len(first.body) != len(second.body) || len(first.body) < 500_000 {
			t.Errorf("pages of %d and %d bytes", len(first.body), len(second.body))
		}
	}
}

// One address can't fill all forms.
func TestPerAddress(t *testing.T) {
	w := newWorld(t, formsvc.CampaignInput{EmailOptional: true}, nil)
	stored := 0
	for range 5 {
		campaign, err := w.svc.Campaigns.Create(t.Context(), w.account, w.campaign.CampaignInput)
		w.must(err)
		w.url = w.url[:strings.LastIndexByte(w.url, '/')+1] + campaign.FormToken
		for range 9 {
			if w.post("a", "1").status == 303 {
				stored++
			}
		}
	}
	equal(t, stored, 30, "%d are stored")
	w.address.Store("192.0.2.9")
	w.post("a", "1").is(303)
}

// Every reply to an allowed origin can be read by its script, and a script's form gets JSON.
func TestScripts(t *testing.T) {
	const friend = "https://friend.example"
	in := files()
	in.Form.AllowedOrigins = []string{friend}
	w := newWorld(t, in, &intake.Options{PerVisitor: 6})
	const form, urlencoded = "--x\r\nContent-Disposition: form-data; name=\"cv\"; filename=\"a\"\r\n\r\na\r\n--x--", "application/x-www-form-urlencoded"
	for i, x := range []struct {
		method, path, contentType, body string
		header                          []string
		status                          int
	}{
		{"POST", "", "multipart/form-data; boundary=x", form, []string{"Sec-Fetch-Mode", "cors"}, 201},
		{"POST", "", "multipart/form-data; boundary=x", form, []string{"Accept", "*/*"}, 201},
		{"POST", "", "multipart/form-data; boundary=x", form, []string{"X-Requested-With", "XMLHttpRequest"}, 201},
		{"POST", "", "multipart/form-data; boundary=x", form, []string{"Sec-Fetch-Mode", "navigate", "Accept", "text/html,*/*"}, 303},
		{"POST", "", "text/plain", "x", nil, 415}, {"POST", "", urlencoded, strings.Repeat("x", 4_300_000), nil, 413}, {"POST", "", urlencoded, "", nil, 429},
		{"GET", "", "", "", nil, 200}, {"PUT", "", "", "", nil, 405}, {"GET", "x", "", "", nil, 404}, {"POST", "x", "application/json", "{}", nil, 404}, {"OPTIONS", "", "", "", nil, 204}, {"OPTIONS", "x", "", "", nil, 404},
	} {
		a := w.do(x.method, w.url+x.path, x.contentType, strings.NewReader(x.body), append(x.header, "Origin", friend)...).is(x.status)
		if allow := a.header.Get("Access-Control-Allow-Origin"); allow != friend && allow != "*" || !strings.Contains(a.header.Get("Access-Control-Expose-Headers"), "Retry-After") {
			t.Errorf("%d: %v", i, a.header)
		}
		if x.status == 201 {
			a.has(`{"reference":"`)
		}
		if x.status == 204 {
			for _, name := range []string{"X-Requested-With", "X-Request-Id", "Idempotency-Key", "Accept", "Content-Type"} {
				if !strings.Contains(a.header.Get("Access-Control-Allow-Headers"), name) {
					t.Errorf("%s: %v", name, a.header)
				}
			}
		}
	}
	w.address.Store("192.0.2.3")
	before := len(w.responses())
	w.do("POST", w.url, "multipart/form-data; boundary=x", strings.NewReader(form), "Origin", "https://stranger.example", "Sec-Fetch-Mode", "cors").is(403)
	for range 2 {
		w.do("POST", w.url, "multipart/form-data; boundary=x", strings.NewReader(form), "Origin", friend, "Sec-Fetch-Mode", "cors", "Idempotency-Key", "k").is(201)
	}
	w.do("POST", w.url, "multipart/form-data; boundary=x", strings.NewReader(form), "Sec-Fetch-Mode", "same-origin", "Accept", "*/*").is(201)
	w.must(w.store.Close())
	w.wait(time.Minute)
	a := w.do("POST", w.url, urlencoded, strings.NewReader("x"), "Origin", friend).is(503)
	if a.header.Get("Access-Control-Allow-Origin") == "" || before != 4 {
		t.Errorf("%v, %d responses", a.header, before)
	}
}

// What programs make a part of a link leads to the form, and nothing leads out of the prefix.
func TestLinksWithMore(t *testing.T) {
	w := newWorld(t, formsvc.CampaignInput{EmailOptional: true}, &intake.Options{PerVisitor: -1})
	h, err := intake.New(w.svc, &intake.Options{PerVisitor: -1})
	w.must(err)
	token := w.campaign.FormToken
	for _, prefix := range []string{"/f", "/f/"} {
		served := http.StripPrefix(prefix, h)
		get := func(method, path string) *answer {
			r := httptest.NewRequest(method, "/f/x", strings.NewReader("a=1"))
			r.URL.Path = "/f/" + path
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			recorder := httptest.NewRecorder()
			served.ServeHTTP(recorder, r)
			return &answer{t, recorder.Code, recorder.Header(), recorder.Body.String()}
		}
		for _, more := range []string{"/", "//", ".", ")", ",", ">", ";", `"`, "'", " ", "\u00a0", "…", "”", "!", ").", "/.", "/)", "*", "]", "%20", ". Thanks"} {
			a := get("GET", token+more).is(302)
			base := "/f/" + token + more
			equal(t, resolve(base, a.header.Get("Location")), "/f/"+token, "%q leads to %q", more)
			a = get("POST", token+more).is(303)
			equal(t, resolve(base, a.header.Get("Location")), "/f/"+token+"/thanks", "posted to %q leads to %q", more)
		}
		get("GET", token).is(200)
		get("GET", token+"//thanks").is(200).has(`href="../../assets/`)
		get("GET", "/"+token+"/thanks").is(200)
		for _, path := range []string{"", "/", token + "x", token + "/x", "x" + token, token + "/thanks/x", "assets/", "assets/form.go"} {
			get("GET", path).is(404)
		}
		get("GET", "assets/form.css").is(200)
	}
}

// resolve returns the path that a relative address means on a page.
func resolve(base, to string) string {
	segments := strings.Split(base[:strings.LastIndexByte(base, '/')], "/")
	for _, s := range strings.Split(to, "/") {
		switch s {
		case "..":
			segments = segments[:len(segments)-1]
		case ".":
		default:
			segments = append(segments, s)
		}
	}
	return strings.Join(segments, "/")
}

// A form that takes no answers says since when, or from when, in the form's language.
func TestOpeningTimes(t *testing.T) {
	at := time.Date(2030, 3, 7, 15, 4, 0, 0, time.UTC)
	for language, want := range map[string][]string{
		"en": {"isn&#39;t open yet", "It opens on \u20687 March 2030 at 15:04 UTC\u2069.", "closed since \u2068"}, "de": {"noch nicht geöffnet", "7. März 2030 um 15:04 Uhr UTC", "seit dem"},
		"fr": {"pas encore ouvert", "7 mars 2030 à 15:04 UTC", "depuis"}, "es": {"aún no está abierto", "7 de marzo de 2030 a las 15:04 UTC", "desde"}, "ar": {"لم يُفتح بعد", "7 مارس 2030", "منذ"},
	} {
		form := formsvc.Form{Language: language}
		w := newWorld(t, formsvc.CampaignInput{OpensAt: at, Form: form}, nil)
		w.get("").is(409).has(want[0], want[1])
		w.post("a", "1").is(409).has(want[1])
		w.json(`{}`).is(409).has(`"code":"campaign_closed"`)
		w = newWorld(t, formsvc.CampaignInput{ClosesAt: at, Form: form}, nil)
		now := at
		w.now.Store(&now)
		w.get("").is(409).has(want[1][strings.IndexByte(want[1], '7'):len(want[1])-1], want[2])
		w = newWorld(t, formsvc.CampaignInput{Status: formsvc.CampaignClosed, OpensAt: at, Form: form}, nil)
		if strings.Contains(w.get("").is(409).body, "2030") {
			t.Error("a closed form says when it opens")
		}
	}
	for _, language := range formsvc.FormLanguages() {
		w := newWorld(t, formsvc.CampaignInput{OpensAt: at, TimeZone: "Asia/Tokyo", Form: formsvc.Form{Language: language}}, nil)
		if body := w.get("").is(409).has("00:04", "JST").body; strings.Contains(body, "UTC") {
			t.Errorf("%s: %s", language, body)
		}
	}
}

// The owner chooses the language of all pages, and each of the owner's texts runs its own way.
func TestLanguageOfTheForm(t *testing.T) {
	in := every()
	in.Form.Language = "ar"
	w := newWorld(t, in, nil)
	const arabic = `<html lang="ar" dir="rtl">`
	w.get("", "Accept-Language", "de").is(200).has(arabic, `<h1 dir="auto">Helpers`, `<p class="text" dir="auto">Five minutes.`, `<label for="q4" dir="auto">Nickname`, `id="q4-help" dir="auto">`, `<span dir="auto">S</span>`,
		`<option dir="auto" value="A">A`, `name="nick" value="" dir="auto"`)
	w.get("/thanks", "Accept-Language", "de").has(arabic, `<p class="text" dir="auto">See you there.`)
	w.post("email", "x").is(422).has(arabic)
	w.upload(nil, "about", strings.Repeat("x", 4_300_000)).is(413).has(arabic)
}

// Limits that an owner sets are shown, checked, and said in the form's language.
func TestOwnersLimits(t *testing.T) {
	in := formsvc.CampaignInput{EmailOptional: true, Modules: []formsvc.Module{
		{Name: "guests", Type: formsvc.NumberModule, Min: "1", Max: "10.5", Integer: true}, {Name: "least", Type: formsvc.NumberModule, Min: "0"}, {Name: "most", Type: formsvc.NumberModule, Max: "0"},
		{Name: "day", Type: formsvc.DateModule, Min: "2026-01-01", Max: "2026-12-31"}, {Name: "photo", Type: formsvc.FileModule, Accept: []string{"image/*", ".pdf"}},
	}}
	english := []string{"Enter a whole number", "From \u20681\u2069 to \u206810.5\u2069.", "At least \u20680\u2069.", "At most \u20680\u2069.", "From \u20681 January 2026\u2069 to \u206831 December 2026\u2069.", "\u2068image/*, .pdf\u2069"}
	for language, want := range map[string][]string{"en": english, "de": {"ganze Zahl", "10,5", "Mindestens", "Höchstens", "31. Dezember 2026"}, "fr": {"nombre entier", "10,5", "Au moins", "31 décembre 2026"}, "es": {"entero", "Como mínimo", "31 de diciembre de 2026"}, "ar": {"صحيحًا", "على الأقل", "31 ديسمبر 2026"}} {
		in.Form.Language = language
		w := newWorld(t, in, nil)
		w.get("").is(200).has(`min="2026-01-01" max="2026-12-31"`, `accept="image/*,.pdf"`)
		w.upload([]part{{"photo", "a.txt", "a"}}, "guests", "3.5", "least", "-3", "most", "1", "day", "2027-01-01").is(422).has(append(want, `href="#q4"`, `href="#q5"`, `href="#q6"`, `href="#q7"`, `href="#q8"`)...)
		w.upload([]part{{"photo", "a.PDF", "a"}}, "guests", "10", "least", "0", "most", "-1", "day", "2026-12-31").is(303)
	}
}

// Equal choices count once, in forms and in JSON.
func TestRepeatedChoices(t *testing.T) {
	w := newWorld(t, every(), nil)
	base := []string{"email", "a@example.com", "nick", "A", "langs", "en", "langs", "en"}
	w.post(append(base, "car", "false", "car", "false", "days", "Fri", "days", "Sat", "days", "Fri", "size", "M", "size", "M", "land", "G", "land", "G")...).is(303)
	w.json(`{"user":{"email":"a@example.com"},"responses":{"nick":{"value":["A"]},"car":{"value":["false","false"]},"days":{"value":["Fri","Sat","Fri"]},"size":{"value":["M","M"]}}}`).is(201)
	for _, got := range w.stands() {
		if !strings.Contains(got, `"days":{"value":["Fri","Sat"]}`) || !strings.Contains(got, `"car":{"value":["false"]}`) || !strings.Contains(got, `"size":{"value":["M"]}`) {
			t.Error(got)
		}
	}
	w.post(append(base, "car", "false", "size", "M", "size", "S")...).is(422).has("Give one answer only")
}

// A page from a node whose clock is ahead isn't quick, and the owner sees why others are held.
func TestQuickPages(t *testing.T) {
	w := newWorld(t, formsvc.CampaignInput{EmailOptional: true}, nil)
	page := w.get("").token()
	w.wait(-5 * time.Second)
	w.post("_page", page, "a", "1").is(303)
	w.wait(6 * time.Second)
	w.post("_page", page, "a", "2").is(303)
	w.post("_page", page, "_honeypot", "x", "a", "3").is(303)
	var got []formsvc.HoldReason
	for _, r := range w.responses() {
		got = append(got, r.Held)
	}
	if !slices.Equal(got, []formsvc.HoldReason{formsvc.NotHeld, formsvc.HeldQuick, formsvc.HeldTrap}) {
		t.Errorf("%q", got)
	}
}

// Browsers check dates, since they have no value for half of one. Other pages leave the checks to the server.
func TestDatesAreCheckedByBrowsers(t *testing.T) {
	form := regexp.MustCompile(`<form [^>]*>`)
	for kind, want := range map[formsvc.ModuleType]bool{"text": true, "number": true, "date": false, "file": false} {
		w := newWorld(t, formsvc.CampaignInput{Modules: []formsvc.Module{{Name: "x", Type: kind}}}, nil)
		if got := form.FindString(w.get("").body); strings.Contains(got, "novalidate") != want {
			t.Errorf("%s: %s", kind, got)
		}
	}
}
