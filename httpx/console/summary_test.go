package console_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// offers checks that a page has a link to the query.
func (a *answer) offers(query string) {
	a.w.t.Helper()
	if !strings.Contains(a.body, `href="`+query+`"`) {
		a.w.t.Errorf("%s doesn't lead to %s", a.what, query)
	}
}

// The visitor chooses the periods of dates. Links and forms keep what is compared.
func TestSummaryDates(t *testing.T) {
	w := newSignedIn(t)
	c, path := w.form(formsvc.Module{Name: "day", Label: "Arrival", Type: "date"}, formsvc.Module{Name: "ok", Label: "Sure", Type: "boolean"})
	for _, day := range []string{"2026-12-27", "2026-12-28", "2027-01-03", "2027-01-11"} { // Sunday, Monday, Sunday, Monday
		w.response(&c, "Ada", value("day", day), value("ok", "true"))
	}
	a := w.get(path+"/summary").says("Responses per day Show the last 30 days", "4 answered. Shown by day.", "2026-12-27 1 25 % 2026-12-28 1 25 % 2026-12-29 0 0 %")
	a.offers("?dates=week")
	a = w.get(path+"/summary?dates=week").says(
		"Responses per week", "Week of 2026-12-21 1 25 % Week of 2026-12-28 2 50 % Week of 2027-01-04 0 0 % Week of 2027-01-11 1 25 %")
	if n := strings.Count(a.body, `dates=week" aria-current="true"`); n != 2 {
		t.Errorf("%d links to what is shown", n)
	}
	w.get(path+"/summary?dates=month&by=ok").says("2026-12 2 (50 %) 2 (50 %) 0 (0 %)", "Responses per month", "12 months ago").offers("?by=ok&amp;dates=day")
	w.get(path + "/summary?dates=nonsense&by=day").is(200).says("Responses per day").lacks("All (")
	w.response(&c, "Ada", value("day", "1926-12-27"))
	w.get(path + "/summary").says("1926-12-27 1 20 % 2026-12-27 1 20 %")
	a = w.get(path + "/summary?by=ok&dates=day").says("1926-12-27 1 (20 %) 0 (0 %) 0 (0 %) 1 (100 %)")
	to := w.submit(a, path+"/summary", nil).is(303).header.Get("Location")
	equal(t, to, "/admin/console"+path+"/summary?by=ok&dates=day", "counting again leads to %s")
}

// Ratings have every value with mean and median, times are counted by the hour, and consent is counted. All can be filtered by.
func TestSummaryOfRatings(t *testing.T) {
	w := newSignedIn(t)
	c, path := w.form(formsvc.Module{Name: "stars", Label: "Stars", Type: "rating", Min: "-1", Max: "2"}, formsvc.Module{Name: "at", Label: "Arrival", Type: "time"},
		formsvc.Module{Name: "ok", Label: "Terms", Type: "consent"}, formsvc.Module{Name: "tel", Label: "Phone", Type: "phone"})
	w.get(path + "/summary").says("Stars 0 answered. Answer Responses Share -1 0 0 % 0 0 0 % 1 0 0 % 2 0 0 %")
	w.response(&c, "Ada", value("stars", "2"), value("at", "09:00"), value("ok", "true"), value("tel", "+49 30 123456"))
	w.response(&c, "Mia", value("stars", "-1"), value("at", "09:59"))
	w.response(&c, "Joe", value("stars", "2"), value("at", "23:00"))
	w.get(path+"/summary").says("Average (mean) 1 Median 2 Answer Responses Share -1 1 33 % 0 0 0 % 1 0 0 % 2 2 67 %", "09:00–09:59 2 67 % 23:00–23:59 1 33 %", "Terms 1 answered. Answer Responses Share Yes 1 100 %").lacks("Sum 3", "Sum 1")
	id := func(name string) string {
		for n := range w.get(path + "?ask=").page.Descendants() {
			if label := attribute(n, "aria-label"); strings.HasPrefix(label, name+": ") {
				return strings.SplitN(attribute(n, "name"), ".", 2)[1]
			}
		}
		return ""
	}
	for query, want := range map[string][]string{
		"from." + id("Stars") + "=0&to." + id("Stars") + "=2": {"Ada", "Joe"}, "from." + id("Arrival") + "=09:30": {"Mia", "Joe"}, "to." + id("Arrival") + "=09:00": {"Ada"},
		"a." + id("Phone") + "=%2B49": {"Ada"},
	} {
		page := w.get(path + "?" + query).is(200)
		for _, name := range []string{"Ada", "Mia", "Joe"} {
			if shown := strings.Contains(page.body, name); shown != slices.Contains(want, name) {
				t.Errorf("%s: %s is shown: %t", query, name, shown)
			}
		}
	}
}

// Groups are compared in columns: of up to six answers, with others and those without an answer.
func TestSummaryCompare(t *testing.T) {
	w := newSignedIn(t)
	long := strings.Repeat("ü", 60)
	c, path := w.form(
		formsvc.Module{Name: long, Label: "Meal", Type: "choice", Multiple: true, Options: strings.Split("Fish Meat Rice Soup Cake Tea Nuts Figs", " ")},
		formsvc.Module{Name: "n", Label: "Guests", Type: "number"}, formsvc.Module{Name: "ok", Label: "Sure", Type: "boolean"},
		formsvc.Module{Name: "cv", Label: "Photo", Type: "file"}, formsvc.Module{Name: "day", Label: "Arrival", Type: "date"}, formsvc.Module{Name: "t", Label: "Song"})
	w.response(&c, "a", value(long, "Fish", "Meat"), value("n", "1"), value("ok", "true"))
	w.response(&c, "b", value(long, "Fish"), value("n", "2"), value("ok", "false"), value("day", "2026-01-02"))
	r := w.response(&c, "c", value(long, "Nuts", "Figs"), value("n", "9"), value("t", "Answer"))
	w.response(&c, "d", value("n", "4"))
	for _, file := range [][2]string{{"a.txt", "cv"}, {"b.txt", "cv"}, {"c.txt", "n"}} {
		_, err := w.svc.Files.Upload(t.Context(), r.Key(), formsvc.FileInput{Name: file[0], Module: file[1], Content: strings.NewReader(strings.Repeat("x", 1000))})
		w.must(err)
	}
	page := w.get(path+"/summary").says("Compare by Nothing Meal Sure Compare", "Sum 16 Average (mean) 4 Median 3", "Photo 1 answered. Files 2 Size in all 2.0 kB", "Song 1 answered.").lacks("Fish (")
	by := ""
	for n := range page.page.Descendants() {
		if n.Data == "option" && textOf(n) == "Meal" {
			by = attribute(n, "value")
		}
	}
	query := url.Values{"by": {by}}.Encode()
	page = w.get(path+"/summary?"+query).says(
		"A response with several of the compared answers counts in each of their groups",
		"Answer All (4) Fish (2) Meat (1) Rice (0) Soup (0) Cake (0) Tea (0) Others (1) No answer (1) Fish 2 (67 %) 2 (100 %) 1 (100 %)",
		"Sum 16 3 1 – – – – 9 4 Average (mean) 4 1.5 1 – – – – 9 4 Median 3 1.5 1 – – – – 9 4 Least 1 1 1",
		"Yes 1 (50 %) 1 (50 %) 1 (100 %) 0 (0 %)", "Files 2 – – – – – – 2 – Size in all 2.0 kB", "First 2026-01-02 2026-01-02 –")
	page.offers("?" + query + "&amp;dates=week")
	w.get(path+"/summary?by=ok").says("All (4) Yes (1) No (1) No answer (2)", "1 1 (25 %) 1 (100 %) 0 (0 %) 0 (0 %)").lacks("Others (")
	w.pages.SetTimes(0, 0)
	for range 1000 {
		w.response(&c, "e", value("ok", "true"))
	}
	w.get(path + "/summary?by=ok&dates=week").says("Counted 1 000 of 1 004").offers("?by=ok&amp;dates=week")
	w.get(path+"/summary?by=ok&dates=week").says("All 1 004 responses", "Yes (1 001)")
	c.Modules[0].Options = c.Modules[0].Options[:6]
	_, err := w.svc.Campaigns.Replace(t.Context(), c.Key(), c.CampaignInput)
	w.must(err)
	w.get(path + "/summary").is(200)
	w.get(path + "/summary").says("Others, which can't be chosen any more 1 33 %")
}

// More numbers than are kept make the median approximate, and nothing else of the figures. So many days are shown by month.
func TestSummaryOfManyNumbers(t *testing.T) {
	w := newSignedIn(t)
	w.pages.SetTimes(0, 1<<40)
	modules := []formsvc.Module{{Name: "n", Label: "Income", Type: "number"}, {Name: "d", Label: "Born", Type: "date"}, {Name: "ok", Label: "Sure", Type: "boolean"}}
	for i := len(modules); i < 102; i++ { // of which each keeps less, and two aren't shown
		modules = append(modules, formsvc.Module{Name: fmt.Sprint("t", i)})
	}
	c, path := w.form(modules...)
	row := 0
	imports := func(until int) {
		_, err := w.svc.Responses.Import(t.Context(), c.Key(), func(yield func(formsvc.ImportRow, error) bool) {
			for ; row < until; row++ {
				day := time.Date(2025, 1, 1+row, 0, 0, 0, 0, time.UTC)
				in := formsvc.ResponseInput{User: formsvc.User{Email: "a@example.com"}, Answers: []formsvc.Answer{
					value("n", fmt.Sprint(row*30+1)), value("d", day.Format(time.DateOnly)), value("ok", fmt.Sprint(row%2 == 0)), value("t101", "x"),
				}}
				if !yield(formsvc.ImportRow{Reference: fmt.Sprint("r", row), CreatedAt: day, ResponseInput: in}, nil) {
					return
				}
			}
		}, nil)
		w.must(err)
	}
	imports(390)
	w.get(path+"/summary?dates=week").says("Median 5836 Least 1", "Week of 2025-12-22 7 ", "2 more questions aren't summarized").lacks("Removed questions")
	w.get(path + "/summary?by=ok").says("Median 5836 5821 5851")
	imports(450)
	w.get(path+"/summary?dates=week").says("Sum 3031200 Average (mean) 6736 Median about 67", "Least 1 Greatest 13471", "0 to 1999 67 15 %", "12000 to 13999 50 11 %",
		"Shown by month. First 2025-01-01 Last 2026-03-26", "2025-02 28 6 %").lacks("Week of 2025-12")
	w.get(path+"/summary?by=ok").says("Average (mean) 6736 6721 6751 Median about 67", "0 to 1999 67 (15 %) 34 (15 %) 33 (15 %)", "2025-02 28 (6 %) 14 (6 %) 14 (6 %)")
}
