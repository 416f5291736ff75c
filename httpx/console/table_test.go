package console_test

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// dinner is a form with a question of each type, and its path.
func (w *world) dinner() (formsvc.Campaign, string) {
	w.t.Helper()
	return w.form(
		formsvc.Module{Name: "meal", Label: "Meal", Type: "choice", Options: []string{"Vegan", "Fish", "Beef; rare"}, Multiple: true},
		formsvc.Module{Name: "age", Label: "Age", Type: "number"}, formsvc.Module{Name: "day", Label: "Arrival", Type: "date"},
		formsvc.Module{Name: "bus", Label: "By bus", Type: "boolean"}, formsvc.Module{Name: "say", Label: "Remarks"},
		formsvc.Module{Name: "cv", Label: "Your CV", Type: "file"},
	)
}

// names returns the first names in the table, in their order.
func (a *answer) names() (names string) {
	for n := range a.page.Descendants() {
		if attribute(n, "class") == "who" && n.Data == "td" {
			names += strings.TrimSuffix(textOf(n), "ada@example.com") + " "
		}
	}
	return strings.TrimSpace(names)
}

// The table, its export, and the neighbours of a response obey conditions on answers, which the page says in words.
func TestFilterByAnswer(t *testing.T) {
	w := newSignedIn(t)
	c, path := w.dinner()
	ada := w.response(&c, "Ada", value("meal", "Vegan", "Fish"), value("age", "30"), value("day", "2026-05-01"), value("bus", "true"), value("say", "Zoë's friend"))
	w.response(&c, "Bob", value("meal", "Beef; rare"), value("age", "9"), value("day", "2026-05-31"), value("bus", "false"), value("say", "zoe"))
	cy := w.response(&c, "Cy", value("meal", "Fish"), value("age", "18.5"), value("say", "none"))
	w.response(&c, "Di")
	for _, row := range []struct{ query, names, says string }{
		{"a.meal=Vegan", "Ada", "Responses Meal is Vegan ✕ . Show all 1 response matches."}, {"a.meal=Fish&a.meal=Vegan", "Cy Ada", "Meal is Vegan or Fish ✕"},
		{"a.meal=Beef%3B+rare", "Bob", "Meal is Beef; rare ✕"}, {"a.meal=Tofu", "", "Meal is Tofu ✕"}, {"from.age=18&to.age=30", "Cy Ada", "Age from 18 to 30 ✕ . Show all 2 responses match."},
		{"from.age=1e1", "Cy Ada", "Age from 1e1 ✕"}, {"to.age=18", "Bob", "Age up to 18 ✕"}, {"from.day=2026-05-02", "Bob", "Arrival from 2 May 2026 ✕"},
		{"a.bus=false", "Bob", "By bus is No ✕"}, {"a.say=ZOE", "Bob Ada", "Remarks contains “ZOE” ✕"}, {"a.say=zoe&a.bus=true&status=pending&search=ada", "Ada", "with status pending"},
		{"from.age=x", "Di Cy Bob Ada", "Age: the value must be a decimal number such as 12, -0.5 or 1e3. The filter leaves it out."},
		{"from.age=30&to.age=18", "Di Cy Bob Ada", "Age must not be less than the least value."}, {"from.meal=a", "Di Cy Bob Ada", ""}, {"a.cv=x&a.bus=", "Di Cy Bob Ada", ""},
	} {
		equal(t, w.get(path+"?"+row.query).is(200).says(row.says).names(), row.names, "%s: %s", row.query)
	}
	page := w.get(path + "?from.age=18&to.age=30&a.meal=Fish")
	for _, file := range []string{"people.csv?answer", "responses.ndjson?answer"} {
		csv := w.get(page.linkTo(path + "/export/" + file)).is(200)
		if strings.Count(csv.body, "ada@example.com") != 2 || strings.Contains(csv.body, "Bob") {
			t.Errorf("%s is %s", file, csv.body)
		}
	}
	if next := w.get(path + "/responses/" + string(cy.ID) + "?a.meal=Fish").links(); !strings.Contains(fmt.Sprint(next), "/responses/"+string(ada.ID)+"?a.meal=Fish") {
		t.Errorf("the next is not Ada: %q", next)
	}
	for n := range page.page.Descendants() {
		if attribute(n, "aria-label") == "Remove: Age from 18 to 30" {
			w.get(path + attribute(n, "href")).says("Responses Meal is Fish").lacks("Age from")
		}
	}
	in := c.CampaignInput
	in.Modules = in.Modules[1:]
	_, err := w.svc.Campaigns.Replace(t.Context(), c.Key(), in)
	w.must(err)
	equal(t, w.get(path+"?a.meal=fish").says("meal (removed) contains “fish” ✕").names(), "Cy Ada", "a removed question finds %s")
	var many []formsvc.Module
	for i := range 100 {
		many = append(many, formsvc.Module{Name: fmt.Sprint("q", i), Label: fmt.Sprint("Question ", i, strings.Repeat("&", 500)), Type: "choice"})
		for o := range 300 {
			many[i].Options = append(many[i].Options, fmt.Sprint(o, strings.Repeat("&", 400)))
		}
	}
	c, path = w.form(many...)
	w.response(&c, "Ada", value("q7", many[7].Options[250]))
	w.get(path).says("Another question").lacks("Another choice")
	page = w.get(path+"?ask=q7").says("Another choice", "Question 7")
	if size := len(page.body); size > 150_000 {
		t.Errorf("%d bytes", size)
	}
	equal(t, w.get(path+"?a.q7="+url.QueryEscape(many[7].Options[250])).says("Question 7").names(), "Ada", "a long choice finds %s")
}

// Every column sorts by its type, with empty ones last, on every page; and neighbours follow.
func TestSortByColumn(t *testing.T) {
	w := newSignedIn(t)
	c, path := w.dinner()
	list := map[string]formsvc.Response{
		"Eva": w.response(&c, "Eva", value("age", "9"), value("meal", "Fish"), value("say", "émile"), value("day", "2026-05-01")),
		"ben": w.response(&c, "ben", value("age", "-10"), value("meal", "Vegan"), value("say", "Zoo"), value("day", "2025-12-31")),
		"Álf": w.response(&c, "Álf", value("age", "1e2"), value("meal", "Beef; rare"), value("say", "ernst")),
		"Cy":  w.response(&c, "Cy"),
	}
	ben := list["ben"]
	_, err := w.svc.Responses.Update(t.Context(), ben.Key(), formsvc.ResponsePatch{Status: new("done")})
	w.must(err)
	for query, names := range map[string]string{
		"": "Cy Álf ben Eva", "sort=from": "Álf ben Cy Eva", "sort=from&order=desc": "Eva Cy ben Álf", "sort=a.age": "ben Eva Álf Cy", "sort=a.age&order=desc": "Álf Eva ben Cy",
		"sort=a.meal": "ben Eva Álf Cy", "sort=a.say": "Eva Álf ben Cy", "sort=a.day&order=desc": "Eva ben Cy Álf", "sort=status": "ben Cy Álf Eva", "sort=a.~changed&order=desc": "ben Cy Álf Eva",
		"sort=nonsense": "Cy Álf ben Eva", "sort=a.age&a.meal=Fish&a.meal=Vegan": "ben Eva", "order=asc": "Eva ben Álf Cy",
	} {
		equal(t, w.get(path+"?"+query).is(200).names(), names, "%s: %s", query)
	}
	page := w.get(path + "?sort=a.age").says("In these files the responses are in the order of their date.")
	sorted := regexp.MustCompile(`aria-sort="([a-z]+)"><a href="([^"]*)">([^<]*)<`).FindAllStringSubmatch(page.body, -1)
	if len(sorted) != 1 || sorted[0][1] != "ascending" || sorted[0][2] != "?order=desc&amp;sort=a.age" || sorted[0][3] != "Age ↑" {
		t.Errorf("sorted columns: %q", sorted)
	}
	one := w.get(path + "/responses/" + string(list["Eva"].ID) + "?sort=a.age").says("Previous Next")
	equal(t, one.next(""), "/admin/console"+path+"/responses/"+string(list["Álf"].ID)+"?sort=a.age", "the next is %s")

	long, path := w.form(formsvc.Module{Name: "n", Type: "number"})
	for i := range 60 {
		w.response(&long, fmt.Sprint(i), value("n", fmt.Sprint((i*7)%60)))
	}
	got, pages := "", 0
	for next := path + "?sort=a.n"; next != ""; pages++ {
		a := w.get(next).is(200)
		got, next = got+a.names()+" ", a.next(path)
	}
	if names := strings.Fields(got); pages != 3 || len(names) != 60 || names[1] != "43" || names[59] != "17" { // 43·7 = 1, 17·7 = 59 of 60
		t.Errorf("%d pages: %s", pages, got)
	}
	for i := range 1_950 {
		w.response(&long, fmt.Sprint("more", i))
	}
	w.get(path+"?sort=a.n").says("These are too many to sort by anything but the date.", "more1949", "Submitted ↓")
	w.pages.SetTimes(time.Hour, 0)
	w.get(path+"?sort=a.n&from.n=0").says("60 responses match.", "n ↑").lacks("too many to sort")
}

// All responses that match a view change in steps, those that came after its page don't, and refused ones are counted.
func TestChangeAllThatMatch(t *testing.T) {
	w := newSignedIn(t)
	w.pages.SetDeleteTime(0)
	c, path := w.dinner()
	for i := range 30 {
		w.response(&c, fmt.Sprint("p", i), value("bus", fmt.Sprint(i%3 == 0)))
	}
	count := func(status string) int64 {
		counts, err := w.svc.Responses.Counts(t.Context(), c.Key())
		w.must(err)
		return counts[status]
	}
	page := w.get(path + "?a.bus=true").says("All 10 that match")
	w.response(&c, "late", value("bus", "true"))
	all := url.Values{"which": {"all"}, "do": {"status"}, "status": {"validated"}}
	step := w.submit(page, path+"/selected", all)
	for i := 1; i < 10; i++ {
		step.is(200).says(fmt.Sprintf("Changed %d of 10.", i), "Go on")
		step = w.submit(step, path+"/selected", nil)
	}
	after := step.is(303).leadsTo(path).says("Done: 10", "Undo", "11 responses match.")
	equal(t, count("validated"), 10, "%d are validated")
	after = w.submit(after, path+"/selected", url.Values{"do": {"undo"}}).is(303).leadsTo(path).says("Undone: 10").lacks(">Undo<")
	equal(t, count("validated"), 0, "%d are validated after Undo")
	w.submit(after, path+"/selected", url.Values{"do": {"undo"}}).is(303).leadsTo(path).says("Undone: 0")

	for name, values := range map[string]url.Values{
		"time": {"until": {"soon"}}, "no time": {"until": {}}, "after": {"after": {"x"}}, "number": {"n": {"-1"}}, "change": {"do": {"x"}}, "which": {"which": {"some"}},
		"filter": {"view": {"from.age=x"}},
	} {
		form := url.Values{"which": {"all"}, "do": {"delete"}, "sure": {"yes"}}
		for field, v := range values {
			form[field] = v
		}
		w.submit(page, path+"/selected", form).is(400).says("Nothing more was changed")
		equal(t, count("pending"), 31, name+": %d are left")
	}
	w.pages.SetDeleteTime(time.Hour)
	asked := w.submit(w.get(path+"?a.bus=true"), path+"/selected", url.Values{"which": {"all"}, "do": {"delete"}}).is(200).says("Delete 11 responses?", "This can't be undone")
	w.response(&c, "later", value("bus", "true"))
	w.submit(asked, path+"/selected", nil).is(303).leadsTo(path).says("Done: 11", "later").lacks(">Undo<", "late<")
	equal(t, count("pending"), 21, "%d are left")
}

// Undo gives each response its former status, unless the workflow or another change is against that.
func TestUndoOfStatus(t *testing.T) {
	w := newSignedIn(t)
	c, path := w.form()
	var ids []string
	for i, status := range []string{"called", "called twice", "pending"} {
		r := w.response(&c, fmt.Sprint(i))
		ids = append(ids, string(r.ID))
		_, err := w.svc.Responses.Update(t.Context(), r.Key(), formsvc.ResponsePatch{Status: &status})
		w.must(err)
	}
	done := w.submit(w.get(path), path+"/selected", url.Values{"response": ids, "do": {"status"}, "status": {"validated"}}).is(303).leadsTo(path).says("Done: 3", "Undo")
	w.submit(w.get(path+"/responses/"+ids[2]), path+"/responses/"+ids[2]+"/status", url.Values{"status": {"completed"}}).is(303)
	w.submit(done, path+"/selected", url.Values{"do": {"undo"}}).is(303).leadsTo(path).says("Undone: 2. Left as they were, since they have changed since, no place is left for them, they can't change back or are gone: 1.", "called twice", "completed")
	other, elsewhere := w.form()
	r := w.response(&other, "Elsewhere")
	page := w.get(elsewhere + "?note=selected").lacks(">Undo<")
	w.cookie("formsvc_undo", "to=pending&s.not%09valid="+string(r.ID)+"+x")
	w.submit(page, elsewhere+"/selected", url.Values{"do": {"undo"}}).is(303).leadsTo(elsewhere).says("Undone: 0.", "gone: 2.", "pending")
}

// A question for files is a column with links, for those who may read files, and when a response changed can be one.
func TestFilesAsColumn(t *testing.T) {
	w := newSignedIn(t)
	c, path := w.dinner()
	r := w.response(&c, "Ada")
	for i := range 7 {
		_, err := w.svc.Files.Upload(t.Context(), r.Key(), formsvc.FileInput{Name: fmt.Sprint("cv", i, ".txt"), Module: "cv", Content: strings.NewReader("x")})
		w.must(err)
	}
	w.get(path).lacks("cv0.txt")
	page := w.submit(w.get(path), path+"/columns", url.Values{"column": {"cv", "~changed"}}).is(303).leadsTo(path).says("Your CV Changed Status", "and 2 more")
	w.get(page.linkTo("/files/")).is(200)
	if csv := w.get(page.linkTo(path + "/export/people.csv?column=")); !strings.HasPrefix(csv.body, "\ufeffReference,Status,Changed (UTC),First name") {
		t.Errorf("the table is %s", csv.body)
	}
}

// A view keeps its filter, order and columns under a name, for everybody who reads the form.
func TestNamedViews(t *testing.T) {
	w := newSignedIn(t)
	_, c, _ := w.editable(pets()[:2]...)
	path := "/campaigns/" + string(c.ID)
	for _, pet := range []string{"Dog", "Cat"} {
		w.response(&c, "Owner of a "+pet, formsvc.Answer{Name: "pet", Value: []string{pet}})
	}
	w.submit(w.get(path), path+"/columns", url.Values{"column": {"pet"}}).is(303)
	page := w.get(path + "?a.pet=Dog&sort=from&note=status").is(200)
	saved := w.submit(page, path+"/views", url.Values{"name": {"Dogs <b>"}}).is(303)
	if want := path + "?a.pet=Dog&c=pet&note=view-saved&sort=from"; !strings.HasSuffix(saved.header.Get("Location"), want) {
		t.Errorf("leads to %s, want %s", saved.header.Get("Location"), want)
	}
	link := "?a.pet=Dog&c=pet&sort=from"
	w.get(path).is(200).says("Responses Dogs <b> Spam (0)", "Owner of a Cat").has(`<a href="` + html.EscapeString(link) + `" dir="auto">`).lacks("Delete the view")
	w.get(path+link).is(200).says("Owner of a Dog", "Delete the view Dogs <b>").lacks("Owner of a Cat", "Save this view")
	w.submit(w.get(path+"?status=pending"), path+"/views", url.Values{"name": {"Dogs <b>"}}).is(303).leadsTo(path).says("in place of the one that had this name")
	w.get(path + link).says("Save this view")
	for name, status := range map[string]int{"": 422, " ": 422, strings.Repeat("é", 61): 422, "a\x00": 400} {
		w.submit(w.get(path), path+"/views", url.Values{"name": {name}}).is(status)
	}
	for i := range 19 {
		w.submit(w.get(path), path+"/views", url.Values{"name": {fmt.Sprint("View ", i)}}).is(303)
	}
	w.submit(w.get(path), path+"/views", url.Values{"name": {"One more"}}).is(409).says("A form can have 20 views")
	w.submit(w.get(path+"?status=pending&c=pet"), path+"/views", url.Values{"name": {"Dogs <b>"}, "do": {"delete"}}).is(303).leadsTo(path).says("The view is deleted")
	w.submit(w.get(path), path+"/views", url.Values{"name": {"Dogs <b>"}, "do": {"delete"}}).is(404)
}
