package console_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/gate"
)

// form creates a campaign with questions, and returns its path.
func (w *world) form(modules ...formsvc.Module) (formsvc.Campaign, string) {
	w.t.Helper()
	c, err := w.svc.Campaigns.Create(w.t.Context(), w.account.ID, formsvc.CampaignInput{Title: "Form", Modules: modules})
	w.must(err)
	return c, "/campaigns/" + string(c.ID)
}

func (w *world) held(c *formsvc.Campaign, name string, why formsvc.HoldReason, answers ...formsvc.Answer) formsvc.Response {
	w.t.Helper()
	r, err := w.svc.Responses.Create(w.t.Context(), c.Key(), formsvc.ResponseInput{
		User: formsvc.User{Email: "spam@example.com", FirstName: name}, Held: why, Answers: answers,
	})
	w.must(err)
	return r
}

func value(name string, values ...string) formsvc.Answer {
	return formsvc.Answer{Name: name, Value: values}
}

// Spam has a tab of its own, and counts nowhere else. It says why it is held, and can be released.
func TestSpamIsApart(t *testing.T) {
	w := newSignedIn(t)
	c, path := w.form(formsvc.Module{Name: "n", Label: "Size", Type: "number"}, formsvc.Module{Name: "t", Label: "Say"})
	real := w.response(&c, "Real", value("n", "5"))
	spam := []formsvc.Response{
		w.held(&c, "Trapped", formsvc.HeldTrap, value("n", "98765432"), value("t", "Cheap pills")), w.held(&c, "Quick", formsvc.HeldQuick), w.held(&c, "Judged", formsvc.HeldJudged), w.held(&c, "Own", "our own word"),
	}
	w.get("/campaigns").says("1 total", "open 1 20").lacks(">5<")
	w.get("/").says("Real").lacks("Trapped", spam[0].Reference)
	w.get(path).says("1 response ,", "Spam (4)", "Real").lacks("Trapped", "Own")
	w.get(path + "?search=trapped").says("No matching").lacks(spam[0].Reference)
	w.get(path + "?email=spam%40example.com").says("No matching")
	w.get(path+"/summary").says("All 1 responses", "Spam isn't counted: 4 responses", "Least 5 Greatest 5", "By status Status Responses Share pending 1 100 %").lacks("98765432", "pills")
	for _, file := range []string{"responses.csv", "responses.ndjson", "people.csv"} {
		w.get(path+"/export/"+file).is(200).lacks("Trapped", "98765432")
		if a := w.get(path + "/export/" + file + "?status=spam"); !strings.Contains(a.body, "Trapped") || strings.Contains(a.body, "Real") {
			t.Errorf("%s of spam: %s", file, a.body)
		}
	}
	tab := w.get(path+"?status=spam").says("Spam (4)", "1 response ,", "A field that people don't see", "sooner after it was shown", "The spam filter", "our own word", "Not spam").lacks("Real")
	one := path + "/responses/" + string(spam[0].ID)
	page := w.get(one+"?status=spam").says("A field that people don't see", "Not spam", "a response that is held raises no events").lacks("retention")
	w.submit(page, one+"/status", url.Values{"status": {"pending"}}).is(303).leadsTo(one).says("Status changed", "Submitted by console", "pending").lacks("Not spam")
	w.submit(tab, path+"/selected", url.Values{"response": {string(spam[1].ID)}, "do": {"ham"}}).is(303)
	w.get(path).says("3 responses", "Spam (2)", "Trapped", "Quick", "Real")
	w.submit(w.get(path), path+"/selected", url.Values{"response": {string(real.ID)}, "status": {"spam"}, "do": {"status"}}).is(303)
	w.get("/").lacks(real.Reference)
	w.get(path+"/responses/"+string(real.ID)).says("Somebody marked it as spam", "Not spam")
	w.get(path+"/summary").says("All 2 responses", "Spam isn't counted: 3 responses", "Greatest 98765432")
}

// The view of a list is in the address of a response, of its neighbours, and of every way back.
func TestViewIsInEveryAddress(t *testing.T) {
	w := newSignedIn(t)
	c, path := w.form(formsvc.Module{Name: "a", Label: "First"}, formsvc.Module{Name: "b", Label: "Second"})
	var list []formsvc.Response
	for i := range 8 {
		r := w.response(&c, []string{"Zoé", "Ada"}[i%2], value("a", "x"), value("b", "y"))
		if i%4 < 2 {
			_, err := w.svc.Responses.Update(t.Context(), r.Key(), formsvc.ResponsePatch{Status: new("done")})
			w.must(err)
		}
		list = append(list, r)
	}
	page := func(i int) string { return path + "/responses/" + string(list[i].ID) }
	for _, row := range []struct {
		view         string
		older, newer int
	}{
		{"", 3, 5}, {"c=b&status=done", 1, 5}, {"search=zoe", 2, 6}, {"search=zoe&status=done", 0, -1}, {"order=asc&status=done", 1, 5},
		{"createdBefore=2100-01-01&email=ada%40example.com", 3, 5}, {"reference=" + list[4].Reference, -1, -1},
	} {
		suffix := strings.TrimSuffix("?"+row.view, "?")
		a := w.get(page(4) + suffix).is(200)
		for _, n := range []struct {
			rel string
			at  int
		}{{"next", row.older}, {"prev", row.newer}} {
			got := ""
			for x := range a.page.Descendants() {
				if attribute(x, "rel") == n.rel {
					got = strings.TrimPrefix(attribute(x, "href"), "/admin/console")
				}
			}
			if want := ""; n.at >= 0 && got != page(n.at)+suffix || n.at < 0 && got != want {
				t.Errorf("%q: %s is %s", row.view, n.rel, got)
			}
		}
		if suffix != "" && !slices.Contains(a.links(), path+suffix) {
			t.Errorf("%q: no link to the list in %q", row.view, a.links())
		}
		for action, fields := range map[string]url.Values{"/status": {"status": {"done"}}, "/comments": {"body": {"x"}}} {
			to := w.submit(a, page(4)+action, fields).is(303).header.Get("Location")
			if _, query, _ := strings.Cut(to, "?"); !strings.HasPrefix(to, "/admin/console"+page(4)+"?") || !sameView(query, row.view) {
				t.Errorf("%q: %s leads to %s", row.view, action, to)
			}
		}
		w.submit(w.get(page(4)+suffix), page(4)+"/comments", url.Values{"body": {" "}}).is(422)
		doomed := w.response(&c, "Doomed")
		to := w.submit(w.get(path+"/responses/"+string(doomed.ID)+suffix), path+"/responses/"+string(doomed.ID)+"/delete", nil).is(303).header.Get("Location")
		if _, query, _ := strings.Cut(to, "?"); !strings.HasPrefix(to, "/admin/console"+path+"?") || !sameView(query, row.view) {
			t.Errorf("%q: deletion leads to %s", row.view, to)
		}
	}
	a := w.get(path + "?c=b&status=done&order=asc").says("Second").lacks("<th>First")
	a.linkTo(path + "/responses/" + string(list[0].ID) + "?c=b&order=asc&status=don")
	if csv := w.get(a.linkTo(path + "/export/people.csv?column=")).is(200); !strings.HasPrefix(csv.body, "\ufeffReference,Status,Second,First name") ||
		strings.Index(csv.body, list[0].Reference) > strings.Index(csv.body, list[4].Reference) {
		t.Errorf("the table is %s", csv.body)
	}
	if form := filled(a.page); form.Get("c") != "b" || form.Get("order") != "asc" {
		t.Errorf("a search loses the columns: %v", form)
	}
	w.submit(w.get(path), path+"/columns", url.Values{"column": {"a"}}).is(303)
	w.get(path).lacks("<th>Second") // the columns chosen last
	w.get(path + "?c=b").says("Second").lacks("<th>First")
}

// sameView compares the queries of a list, apart from notes.
func sameView(a, b string) bool {
	x, _ := url.ParseQuery(a)
	y, _ := url.ParseQuery(b)
	x.Del("note")
	return x.Encode() == y.Encode()
}

// All times of the console are in the time zone of the browser.
func TestTimeZone(t *testing.T) {
	w := newSignedIn(t)
	c, path := w.form(formsvc.Module{Name: "ok", Label: "All well?", Type: "boolean"}, formsvc.Module{Name: "cv", Label: "Your CV", Type: "file"})
	w.mu.Lock()
	w.now = time.Date(2026, 11, 28, 12, 30, 0, 0, time.UTC)
	w.mu.Unlock()
	r := w.response(&c, "Ada", value("ok", "true"))
	file, err := w.svc.Files.Upload(t.Context(), r.Key(), formsvc.FileInput{Name: "cv.txt", Module: "cv", Content: strings.NewReader("x")})
	w.must(err)
	w.serve(nil)
	w.signIn()
	w.get(path+"?createdAfter=2026-11-29").says("Times are in UTC", "No matching responses", "Submitted since (UTC)")
	w.get(path).says("2026-11-28 12:30:00 UTC")
	w.get(path + "/summary").says("2026-11-28: 1")
	for _, zone := range []string{"Mars/Base", "Local", "../../etc/passwd", "UTC"} {
		w.cookie("formsvc_zone", zone)
		w.get(path).says("Times are in UTC")
	}
	w.cookie("formsvc_zone", "America/Sao_Paulo") // without letters
	w.get(path).has(`"2026-11-28 09:30:00 UTC-03"`)
	w.cookie("formsvc_zone", "Pacific/Auckland")
	w.get(path+"?createdAfter=2026-11-29").says("Times are in Pacific/Auckland", "Ada", "29 Nov 2026, 01:30", "since 29 Nov 2026 ✕", "Submitted since (Pacific/Auckland)")
	w.get(path + "?createdBefore=2026-11-29").says("No matching")
	w.get(path + "?search=29+nov+2026").says("Ada")
	w.get(path + "?search=YES").says("Ada")
	w.get(path + "?search=28+nov").says("No matching")
	w.get(path+"/summary").says("2026-11-29: 1", "Your CV 1 answered. Files 1 Size in all 1 B")
	w.get("/").says("29 Nov 2026, 01:30").lacks("UTC<")
	csv := w.get(path + "/export/people.csv?search=29+nov").is(200)
	want := "\ufeffReference,Status,All well?,First name,Last name,E-mail,Submitted (Pacific/Auckland),Completed (Pacific/Auckland),Your CV,Other files\r\n" +
		r.Reference + ",pending,Yes,Ada,,ada@example.com,2026-11-29 01:30,," + w.base + "/files/" + string(file.ID) + ",\r\n"
	if csv.body != want || csv.header.Get("Content-Disposition") != `attachment; filename="responses-2026-11-29.csv"` {
		t.Errorf("%v\n%s\nwant\n%s", csv.header, csv.body, want)
	}
	edit := w.get(path + "/edit").says("Opens (Pacific/Auckland)")
	w.submit(edit, path+"/edit", url.Values{"opensAt": {"2026-11-29T08:30"}}).is(303)
	if c, err = w.svc.Campaigns.Get(t.Context(), c.Key()); err != nil || !c.OpensAt.Equal(time.Date(2026, 11, 28, 19, 30, 0, 0, time.UTC)) {
		t.Errorf("opens at %v, %v", c.OpensAt, err)
	}
	equal(t, w.get(path+"/edit").form(path+"/edit").Get("opensAt"), "2026-11-29T08:30", "the form has %s")
}

// A status that no response has is asked twice. Known ones, and those of other responses, aren't.
func TestNewStatusIsAskedTwice(t *testing.T) {
	w := newSignedIn(t)
	c, path := w.form()
	r, other := w.response(&c, "Ada"), w.response(&c, "Bob")
	one := path + "/responses/" + string(r.ID)
	status := func() string {
		got, err := w.svc.Responses.Get(t.Context(), r.Key())
		w.must(err)
		return got.Status
	}
	asked := w.submit(w.get(one+"?search=a"), one+"/status", url.Values{"status": {"Confimed"}}).is(422).says("Create the status “Confimed”?", "completed, pending, validated")
	equal(t, status(), "pending", "it is %s at once")
	w.submit(asked, one+"/status", nil).is(303).leadsTo(one)
	equal(t, status(), "Confimed", "then it is %s")
	w.submit(w.get(one), one+"/status", url.Values{"status": {"validated"}}).is(303)
	many := url.Values{"response": {string(r.ID), string(other.ID)}, "do": {"status"}, "newStatus": {"Called"}}
	asked = w.submit(w.get(path), path+"/selected", many).is(422).says("Create it for 2 selected")
	w.submit(asked, path+"/selected", nil).is(303).leadsTo(path).says("Done: 2")
	w.submit(w.get(path), path+"/selected", url.Values{"response": {string(r.ID)}, "do": {"status"}, "status": {"pending"}}).is(303)
	w.submit(w.get(one), one+"/status", url.Values{"status": {"Called"}}).is(303)
	if w.get(path).says("Called"); status() != "Called" {
		t.Errorf("a status of another response: %s", status())
	}
}

// Long names fit in the address, and columns beyond the limit are told. Answers to removed questions can be shown.
func TestColumnsThatFit(t *testing.T) {
	w := newSignedIn(t)
	var modules []formsvc.Module
	var answers []formsvc.Answer
	for i := range 60 {
		name := fmt.Sprint(i, strings.Repeat("ü", 150))
		modules, answers = append(modules, formsvc.Module{Name: name, Label: fmt.Sprint("Question ", i, ".")}), append(answers, value(name, "answer"))
	}
	c, path := w.form(append(modules, formsvc.Module{Name: "gone", Label: "Gone", Multiple: true})...)
	w.response(&c, "Ada", append(answers, value("gone", "kept answer", "second; part"))...)
	page := w.get(path).is(200)
	all := strings.Split(page.body, `name="column" value="`)[1:]
	for i, part := range all {
		all[i], _, _ = strings.Cut(part, `"`)
	}
	cut := w.submit(page, path+"/columns", url.Values{"column": all}).is(303)
	if to := cut.header.Get("Location"); len(to) > 1000 {
		t.Errorf("an address of %d bytes", len(to))
	}
	cut.leadsTo(path).says("A table has up to 12 answers", "Question 11. Status")
	w.submit(w.get(path), path+"/columns", url.Values{"column": all[:12]}).is(303).leadsTo(path).says("Question 11. Status").lacks("up to 12")
	in := c.CampaignInput
	in.Modules = modules
	_, err := w.svc.Campaigns.Replace(t.Context(), c.Key(), in)
	w.must(err)
	page = w.get(path).says("gone (removed)")
	w.submit(page, path+"/columns", url.Values{"column": {all[0], "gone"}}).is(303).leadsTo(path).says("Question 0. gone (removed) Status", "kept answer; second; part")
	if csv := w.get(w.get(path).linkTo(path + "/export/responses.csv?column=")); !strings.Contains(csv.body, ",gone,") || !strings.Contains(csv.body, "kept answer") {
		t.Errorf("the table as CSV: %s", csv.body)
	}
	w.get(path+"/summary").says("Removed questions", "gone: 1 answered", "Show them in the table")
	w.get(w.get(path + "/summary").linkTo(path + "?c=gon")).says("kept answer")
}

// Numbers and dates are counted in groups that fit, in plain digits, and only real shares are 0 or 100 %.
func TestSummaryGroups(t *testing.T) {
	w := newSignedIn(t)
	numbers := func(from, n, step float64) (list []string) {
		for i := range int(n) {
			list = append(list, fmt.Sprint(from+float64(i)*step))
		}
		return list
	}
	days := func(n, step int) (list []string) {
		for i := range n {
			list = append(list, time.Date(2026, 1, 1+i*step, 0, 0, 0, 0, time.UTC).Format(time.DateOnly))
		}
		return list
	}
	thirds := slices.Concat(slices.Repeat([]string{"a"}, 995), slices.Repeat([]string{"b"}, 1023), slices.Repeat([]string{"c"}, 1002))
	choice := formsvc.Module{Type: "choice", Options: []string{"a", "b", "c"}}
	for _, row := range []struct {
		module  formsvc.Module
		values  []string
		says    []string
		without []string
	}{
		{choice, thirds, []string{"a 995 33 %", "b 1 023 34 %", "c 1 002 33 %"}, nil},
		{choice, append(slices.Repeat([]string{"a"}, 400), "b"), []string{"a 400 >99 %", "b 1 <1 %", "c 0 0 %"}, nil},
		{formsvc.Module{Type: "number"}, []string{"123451", "123452"}, []string{"123451 1 50 %", "123452 1 50 %", "Sum 246903 Average (mean) 123451.5 Median 123451.5 Least 123451 Greatest 123452"}, []string{"e+"}},
		{formsvc.Module{Type: "number"}, []string{"12345678901234567890", "12345678901234567891"}, []string{"12345678901234567890 1", "12345678901234567891 1"}, []string{"e+"}},
		{formsvc.Module{Type: "number"}, []string{"1e3", "1000", "-0.5"}, []string{"-0.5 1 33 %", "1000 2 67 %"}, nil},
		{formsvc.Module{Type: "number"}, numbers(123400, 60, 1), []string{"123400 to 123404 5 8 %", "123455 to 123459 5 8 %"}, []string{"e+"}},
		{formsvc.Module{Type: "number"}, numbers(0, 40, 0.1), []string{"0 to below 0.5 5", "3.5 to below 4 5"}, nil},
		{formsvc.Module{Type: "number"}, numbers(-50, 100, 1), []string{"-50 to -41 10 10 %", "-10 to -1 10", "40 to 49 10"}, nil},
		{formsvc.Module{Type: "number"}, []string{"-5", "0.1", "0.2"}, []string{"Sum -4.7 Average (mean) -1.567 Median 0.1 Least -5 Greatest 0.2", "-5 1 33 %", "0.2 1"}, nil},
		{formsvc.Module{Type: "number"}, []string{"0.1", "0.2"}, []string{"Sum 0.3 Average (mean) 0.15 Median 0.15"}, []string{"0000"}},
		{formsvc.Module{Type: "number"}, []string{"0.00000000012", "1200000000000000000000000"}, []string{"Least 0.00000000012 Greatest 1200000000000000000000000 "}, []string{"e+", "1.2e"}},
		{formsvc.Module{Type: "number"}, append(numbers(0, 13, 1), "1e300"), []string{"Median 6.5", "Answer Responses Share 0 to ", " 13 93 %"}, nil},
		{formsvc.Module{Type: "number"}, numbers(0.001, 13, 0.001), []string{"0 to below 0.002 1 ", "0.012 to below 0.014 2 "}, nil},
		{formsvc.Module{Type: "date"}, days(10, 1), []string{"2026-01-01 1 10 %", "2026-01-10 1 10 %", "First 2026-01-01 Last 2026-01-10"}, nil},
		{formsvc.Module{Type: "date"}, days(10, 3), []string{"2026-01-01 1 10 % 2026-01-02 0 0 % 2026-01-03 0 0 % 2026-01-04 1"}, nil},
		{formsvc.Module{Type: "date"}, days(10, 90), []string{"2026-01-01 1 10 % 2026-04-01 1 10 %"}, nil},
		{formsvc.Module{Type: "date"}, days(60, 5), []string{"2026-01 7 12 %", "First 2026-01-01 Last 2026-10-23"}, []string{"2026-01-01 1"}},
		{formsvc.Module{Type: "date"}, days(40, 100), []string{"2026 4 10 %", "2036 "}, []string{"2026-02"}},
		{formsvc.Module{Type: "date"}, days(1500, 10), []string{"2020s ", "2060s "}, []string{"2031"}},
	} {
		row.module.Name, row.module.Label = "q", "Q"
		c, path := w.form(row.module)
		for _, v := range row.values {
			w.response(&c, "a", value("q", v))
		}
		w.get(path + "/summary").says(row.says...).lacks(row.without...)
	}
	c, path := w.form(formsvc.Module{Name: "q", Type: "text"})
	r := w.response(&c, "a", value("q", "a secret text"))
	for i := range 300 {
		w.response(&c, "a", value("q", fmt.Sprint("text ", i)))
	}
	c.Modules = []formsvc.Module{{Name: "q", Type: "choice", Options: []string{"text 1"}}}
	_, err := w.svc.Campaigns.Replace(t.Context(), c.Key(), c.CampaignInput)
	w.must(err)
	w.get(path+"/summary").says("text 1 1 <1 %", "Others, which can't be chosen any more 300 >99 %").lacks("secret", "text 2")
	_, err = w.svc.Responses.Update(t.Context(), r.Key(), formsvc.ResponsePatch{Answers: []formsvc.AnswerPatch{{Answer: value("q", "text 1")}}})
	w.must(err)
	w.get(path + "/summary").says("text 1 2 1 %") // what changed after it was counted
	w.must(w.svc.Responses.Delete(t.Context(), r.Key(), nil))
	w.get(path+"/summary").says("All 300 responses", "text 1 1 <1 %")
	_, err = w.svc.Accounts.ErasePerson(t.Context(), w.account.ID, "ada@example.com")
	w.must(err)
	w.get(path+"/summary").says("All 0 responses", "text 1 0 0 %").lacks("Others")
}

// The count of a campaign stays while another account looks at many summaries.
func TestCountsPerAccount(t *testing.T) {
	w := newSignedIn(t)
	w.pages.SetTimes(0, 0)
	c, path := w.form()
	for range 1001 {
		w.response(&c, "Ada")
	}
	w.get(path + "/summary").says("Counted 1 000 of 1 001")
	mine := w.client
	other, err := w.svc.Accounts.Create(t.Context(), "other")
	w.must(err)
	w.account, w.client = other, newClient(t)
	w.signIn()
	for range 70 {
		_, theirs := w.form()
		w.get(theirs + "/summary").says("All 0 responses")
	}
	w.client = mine
	w.get(path + "/summary").says("All 1 001 responses")
}

// A stream goes on where the last one, or the page, ended. Without Flush, and beyond the limit of an account, a page asks now and then.
func TestLiveResumes(t *testing.T) {
	w := newSignedIn(t)
	c, other := w.campaign("Live"), w.campaign("Other")
	path := "/campaigns/" + string(c.ID)
	first := func(query, last string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+path+"/live"+query, nil)
		w.must(err)
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		response, err := w.client.Do(r)
		w.must(err)
		defer func() { _ = response.Body.Close() }()
		lines := bufio.NewScanner(response.Body)
		text := ""
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "id: ") {
			text += lines.Text() + "\n"
		}
		return text + lines.Text()
	}
	since := func() string {
		for n := range w.get(path).page.Descendants() {
			if at, ok := attributeOf(n, "data-since"); ok {
				return at
			}
		}
		return "none"
	}
	seen := since()
	w.response(&c, "between the page and its stream")
	got := first("?since="+seen, "")
	if !strings.HasPrefix(got, "retry: 1000\n\ndata: changed\nid: ") {
		t.Fatalf("after the page: %q", got)
	}
	last := got[strings.LastIndex(got, " ")+1:]
	w.response(&other, "elsewhere")
	w.serve(nil) // whose looks are new
	w.signIn()
	whole := func(query string, wrap func(http.ResponseWriter) http.ResponseWriter) string {
		r := httptest.NewRequest(http.MethodGet, path+"/live"+query, nil)
		for _, cookie := range w.client.Jar.Cookies(must(url.Parse(w.server.URL))) {
			r.AddCookie(cookie)
		}
		recorder := httptest.NewRecorder()
		w.pages.ServeHTTP(wrap(recorder), r)
		return recorder.Body.String()
	}
	flushes := func(rw http.ResponseWriter) http.ResponseWriter { return rw }
	plain := func(rw http.ResponseWriter) http.ResponseWriter { return struct{ http.ResponseWriter }{rw} } // a host's middleware without Flush
	now := since()
	for _, row := range []struct {
		query string
		wrap  func(http.ResponseWriter) http.ResponseWriter
		want  string
	}{
		{"?once=1&since=" + now, flushes, "retry: 5000\nid: " + now + "\n\n"},
		{"?once=1&since=" + last, flushes, "retry: 5000\nid: " + now + "\n\n"}, // only the other campaign has changed
		{"?once=1&since=" + seen, flushes, "retry: 5000\nid: " + now + "\n\ndata: changed\nid: " + now + "\n\n"},
		{"?since=" + now, plain, "retry: 30000\nevent: off\ndata: off\nid: " + now + "\n\n"},
		{"?since=" + seen, plain, "retry: 30000\nevent: off\ndata: off\nid: " + now + "\n\ndata: changed\nid: " + now + "\n\n"},
	} {
		equal(t, whole(row.query, row.wrap), row.want, "%s: %q", row.query)
	}
	w.response(&c, "between two streams")
	if got = first("?since="+seen, last); !strings.HasPrefix(got, "retry: 1000\n\ndata: changed\nid: ") {
		t.Errorf("between two streams: %q", got)
	}
}

// An account has few streams at once: its other pages ask now and then, and other accounts have their own.
func TestStreamsPerAccount(t *testing.T) {
	w := newSignedIn(t)
	begin := func() string {
		c := w.campaign("Live")
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		t.Cleanup(cancel)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+"/campaigns/"+string(c.ID)+"/live", nil)
		w.must(err)
		response, err := w.client.Do(r)
		w.must(err)
		t.Cleanup(func() { _ = response.Body.Close() })
		line, _ := bufio.NewReader(response.Body).ReadString('\n')
		return line
	}
	for range 30 {
		if got := begin(); got != "retry: 1000\n" {
			t.Fatalf("a stream begins with %q", got)
		}
	}
	equal(t, begin(), "retry: 5000\n", "one too many begins with %q")
	other, err := w.svc.Accounts.Create(t.Context(), "other")
	w.must(err)
	w.account, w.client = other, newClient(t)
	w.signIn()
	equal(t, begin(), "retry: 1000\n", "that of another account begins with %q")
	w.pages.Close()
}

// Pages and exports share the slots of the API. One that gets none is refused, and nothing is logged as an error of the server.
func TestPagesShareSlots(t *testing.T) {
	w := newSignedIn(t)
	c, empty := w.campaign("Busy"), w.campaign("Empty")
	w.response(&c, "Ada")
	shared := w.limits
	shared.Lists, shared.Exports = gate.New(4, 1, time.Minute), gate.New(4, 1, time.Minute)
	path := "/campaigns/" + string(c.ID)
	for _, row := range []struct {
		gate *gate.Gate
		path string
	}{{shared.Lists, path}, {shared.Exports, path + "/export/responses.csv"}, {shared.Exports, path + "/export/people.csv"}} {
		w.get(row.path).is(200)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		var held []gate.Slot
		for i := 0; ; i++ {
			slot, err := row.gate.Acquire(ended, fmt.Sprint("tenant ", i))
			if err != nil {
				break
			}
			held = append(held, slot)
		}
		waiting, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			_, _ = row.gate.Acquire(waiting, "waiting")
			close(done)
		}()
		for row.gate.Waiting() == 0 {
			runtime.Gosched()
		}
		w.get(row.path).is(503)
		if row.gate == shared.Exports { // what is complete needs no slot any more
			w.get("/campaigns/" + string(empty.ID) + "/export/responses.csv").is(200)
		}
		stop()
		<-done
		for i := range held {
			held[i].Release()
		}
		w.get(row.path).is(200)
	}
	if strings.Contains(w.log.String(), "ERROR") {
		t.Errorf("log: %s", w.log)
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// A response shows who it is from, its answers in the order of the form, and apart those that are no longer asked.
func TestResponseReadsAsTheForm(t *testing.T) {
	w := newSignedIn(t)
	c := w.campaign("Form")
	r := w.response(&c, "Ada", formsvc.Answer{Name: "zeta", Value: []string{"third"}}, formsvc.Answer{Name: "alpha", Value: []string{"first"}}, formsvc.Answer{Name: "beta", Value: []string{"second"}})
	_, err := w.svc.Files.Upload(t.Context(), r.Key(), formsvc.FileInput{Name: "a.txt", Module: "beta", Content: strings.NewReader("x")})
	w.must(err)
	path := "/campaigns/" + string(c.ID)
	one := path + "/responses/" + string(r.ID)
	w.get(one).says("Answers zeta third alpha first beta second").lacks("no longer asked") // a form without questions
	c.Modules = []formsvc.Module{{Name: "beta", Label: "The second?", Type: formsvc.TextModule}, {Name: "alpha", Type: formsvc.TextModule}}
	_, err = w.svc.Campaigns.Replace(t.Context(), c.Key(), c.CampaignInput)
	w.must(err)
	w.get(one).says("Form Ada", "ada@example.com", "Answers The second? second alpha first To questions that are no longer asked zeta third", "for The second?", "UTC Submitted")
	nobody, err := w.svc.Responses.Create(t.Context(), c.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "bob@example.com"}})
	w.must(err)
	w.get(path + "/responses/" + string(nobody.ID)).says("Form bob@example.com")
	w.get(path).says("bob@example.com 2", "Ada ada@example.com 2", nobody.Reference)
}
