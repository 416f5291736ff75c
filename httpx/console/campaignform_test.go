package console_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/console"
)

// A campaign is made, changed and published with the buttons of the pages alone.
func TestCampaignIsMadeInThePages(t *testing.T) {
	w := newSignedIn(t)
	page := w.submit(w.get("/campaigns/new").is(200), "/campaigns", url.Values{
		"title": {"Survey"}, "label.0": {"What do you need?"}, "newType": {"choice"}, "do": {"add"},
	}).is(200)
	page = w.submit(page, "/campaigns", url.Values{
		"label.1": {"What do you need?"}, "options.1": {"A quote\r\n\r\n Help "}, "multiple.1": {"true"}, "do": {"up.1"},
	}).is(200)
	page = w.submit(page, "/campaigns", url.Values{"do": {"add"}, "newType": {"number"}}).is(200)
	for _, moves := range []string{"up.0", "down.2"} {
		if !regexp.MustCompile(`value="` + moves + `"[^>]* disabled`).MatchString(page.body) {
			t.Errorf("%s can be pressed", moves)
		}
	}
	page = w.submit(page, "/campaigns", url.Values{"do": {"remove.2"}}).is(200).lacks("Most characters 2")
	page = w.submit(page, "/campaigns", url.Values{
		"do": {"save"}, "showModule.1": {"what_do_you_need_2"}, "showValues.1": {"Help"}, "required.1": {"true"}, "maxLength.1": {"90"},
		"requireEmail": nil, "askName": {"required"}, "opensAt": {"2026-11-01"},
	}).is(303)
	id, _, _ := strings.Cut(strings.TrimPrefix(page.header.Get("Location"), "/admin/console/campaigns/"), "/")
	path, key := "/campaigns/"+id, formsvc.CampaignKey{AccountID: w.account.ID, ID: formsvc.ID(id)}
	got, err := w.svc.Campaigns.Get(t.Context(), key)
	w.must(err)
	want := []formsvc.Module{
		{Name: "what_do_you_need_2", Label: "What do you need?", Type: "choice", Options: []string{"A quote", "Help"}, Multiple: true},
		{
			Name: "what_do_you_need", Label: "What do you need?", Type: "text", Required: true, MaxLength: 90,
			ShowIf: &formsvc.Condition{Module: "what_do_you_need_2", Equals: []string{"Help"}},
		},
	}
	if !reflect.DeepEqual(got.Modules, want) || !got.EmailOptional || !got.RequireName || got.Form.HideName || got.Title != "Survey" || !got.OpensAt.Equal(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("got %+v", got)
	}

	w.submit(w.get(path+"/edit"), path+"/edit", url.Values{"askName": {"no"}}).is(303)
	w.submit(w.get(path+"/share").is(200).says("Publish the form"), path+"/share", url.Values{"redirectUrl": {"javascript:alert(1)"}}).is(422).says("must be an absolute")
	w.submit(w.get(path+"/share"), path+"/share", url.Values{"enabled": {"true"}, "origins": {"https://a.example\n\nhttps://B.example"}}).is(303)
	got, err = w.svc.Campaigns.Get(t.Context(), key)
	w.must(err)
	if len(got.Form.AllowedOrigins) != 2 || !got.Form.Enabled || !got.Form.HideName || got.FormToken == "" {
		t.Errorf("published: %+v", got.Form)
	}
	w.get(path + "/share").says("/f/" + got.FormToken)
	w.submit(w.get(path+"/share"), path+"/rotate", nil).is(303)
	w.get(path + "/share").lacks(got.FormToken)

	exact := got.CampaignInput
	exact.OpensAt = exact.OpensAt.Add(1234 * time.Millisecond)
	got, err = w.svc.Campaigns.Replace(t.Context(), key, exact)
	w.must(err)
	edit := w.get(path + "/edit").is(200)
	w.submit(edit, path+"/edit", nil).is(303).leadsTo(path)
	again, err := w.svc.Campaigns.Get(t.Context(), key)
	w.must(err)
	if got.UpdatedAt, got.Version, got.FormToken = again.UpdatedAt, again.Version, again.FormToken; !reflect.DeepEqual(got, again) {
		t.Errorf("saved unchanged: %+v, want %+v", again, got)
	}
	w.submit(edit, path+"/edit", url.Values{"title": {"Another"}}).is(409).says("Someone else changed this campaign")
	w.submit(w.get(path+"/edit"), path+"/edit", url.Values{"options.0": {"x\nx"}, "name.1": {strings.Repeat("n", 201)}, "maxLength.1": {"many"}, "closesAt": {"soon"}}).
		is(422).says("Enter a date")
	w.submit(w.get(path+"/edit"), path+"/edit", url.Values{"options.0": {"x\nx"}, "maxLength.1": {"many"}, "title": {" "}}).
		is(422).says("must be unique in the module", "must be between 0 and 1000000", "must not be empty")

	w.submit(w.get(path), path+"/state", nil).is(303)
	w.get(path + "/share").says("The campaign is closed")
	w.must(w.svc.Campaigns.SaveView(t.Context(), key, formsvc.View{Name: "Late", Query: "a=b"}))
	copied := w.submit(w.get(path), path+"/duplicate", nil).is(303).header.Get("Location")
	w.get(strings.TrimPrefix(strings.Split(copied, "/edit")[0], "/admin/console")).says("Copy of Survey")
	w.get(strings.TrimPrefix(strings.Split(copied, "/edit")[0], "/admin/console") + "/share").says("Publish the form")
	if list, err := w.svc.Campaigns.List(t.Context(), formsvc.CampaignQuery{AccountID: w.account.ID}); err != nil || len(list.Items[0].Views) != 1 || list.Items[0].RequireName {
		t.Errorf("the copy: %+v, %v", list.Items, err)
	}
	w.submit(w.get(path), path+"/delete", nil).is(303).leadsTo("/campaigns")
	w.get(path).is(404)
}

// A preview is made from the form as it is typed, or says what is wrong in it. Nothing is saved.
func TestPreview(t *testing.T) {
	w := newWorld(t, nil)
	var got formsvc.Campaign
	w.serve(&console.Options{Preview: func(_ http.ResponseWriter, _ *http.Request, c *formsvc.Campaign) { got = *c }})
	w.signIn()
	page := w.get("/campaigns/new").is(200)
	w.submit(page, "/campaigns", url.Values{"do": {"preview"}}).is(200)
	if got.Title != "Untitled" || len(got.Modules) != 0 {
		t.Errorf("an empty form: %+v", got)
	}
	w.submit(page, "/campaigns", url.Values{"do": {"preview"}, "title": {"Survey"}, "label.0": {"Which <day>?"}, "type.0": {"choice"}, "options.0": {"Monday"}}).is(200)
	if len(got.Modules) != 1 || got.Modules[0].Options[0] != "Monday" || got.Title != "Survey" {
		t.Errorf("got %+v", got)
	}
	w.submit(page, "/campaigns", url.Values{"do": {"preview"}, "label.0": {"Which <day>?"}, "type.0": {"choice"}}).is(200).says("No preview yet", "“Which <day>?”, options: ")
	w.get("/campaigns").says("No campaigns yet")
}

// The table of responses has the columns that were chosen, and changes the selected ones only.
func TestTableOfResponses(t *testing.T) {
	w := newSignedIn(t)
	share := w.submit(w.get("/campaigns"), "/campaigns/sample", nil).is(303).header.Get("Location")
	path := strings.TrimSuffix(strings.TrimPrefix(strings.Split(share, "?")[0], "/admin/console"), "/share")
	key := formsvc.CampaignKey{AccountID: w.account.ID, ID: formsvc.ID(strings.TrimPrefix(path, "/campaigns/"))}
	campaign, err := w.svc.Campaigns.Get(t.Context(), key)
	w.must(err)
	var list []formsvc.Response
	for _, topic := range []string{"An order", "A question", "A question"} {
		answers := []formsvc.Answer{{Name: "topic", Value: []string{topic}}, {Name: "message", Value: []string{"<b>" + topic}}}
		if topic == "An order" {
			answers = append(answers, formsvc.Answer{Name: "order", Value: []string{"A-77"}})
		}
		list = append(list, w.response(&campaign, "ada", answers...))
	}
	w.get(path).says("A-77", "What is it about?").lacks("Your message Status", "<b>")
	w.submit(w.get(path), path+"/columns", url.Values{"column": {"topic", "message"}}).is(303)
	w.submit(w.get(path+"?search=oRDer"), path+"/columns", url.Values{"column": {"topic", "message"}, "do": {"up.message"}}).is(303)
	page := w.get(path+"?search=oRDer&status=pending&createdAfter=2020-01-02").says("From Submitted ↓ Your message What is it about? Status Reference", "<b>An order An order",
		"Responses with status pending ✕ , submitted since 2 Jan 2020 ✕ , containing “oRDer” ✕ .").lacks("A-77", "&gt;A question")
	equal(t, fmt.Sprint(page.form(path + "/columns")["column"]), "[message topic]", "the chosen columns are %s")
	for n := range w.get(path).page.Descendants() {
		if _, live := attributeOf(n, "data-live"); live && len(filled(n)["column"]) > 0 {
			t.Error("the script takes the chosen columns for work on the list")
		}
	}
	table := w.get(page.linkTo(path + "/export/responses.csv?column=")).is(200)
	if want := "reference,status,message,topic,firstName,lastName,email,createdAt\r\n" + list[0].Reference + ",pending,<b>An order,An order,ada,,"; !strings.HasPrefix(table.body, want) ||
		strings.Count(table.body, "\n") != 2 {
		t.Errorf("got\n%s\nwant\n%s", table.body, want)
	}
	for n := range page.page.Descendants() {
		if attribute(n, "aria-label") == "Remove: with status pending" {
			w.get(path + attribute(n, "href")).says("Responses submitted since 2 Jan 2020").lacks("with status")
		}
	}
	w.submit(w.get(path), path+"/selected", url.Values{"response": {string(list[0].ID), string(list[1].ID), "x"}, "status": {"validated"}, "do": {"status"}}).is(303)
	w.get(path+"?note=selected&n=2&refused=1").says("Done: 2. Left as they were, since no place is left for them, they can't change now or are gone: 1.", "validated")
	w.submit(w.get(path), path+"/selected", url.Values{"response": {string(list[0].ID)}, "do": {"delete"}}).is(303)
	w.get(path).lacks(list[0].Reference).says(list[1].Reference, list[2].Reference, "validated", "pending")
	w.submit(w.get(path), path+"/delete", nil).is(409).says("This campaign has responses")
	for i, neighbour := range []int{0, 2, 1} {
		links := w.get(path + "/responses/" + string(list[i].ID)).links()
		if older := path + "/responses/" + string(list[neighbour].ID); i > 0 && (!slices.Contains(links, older) || len(links) != 11) {
			t.Errorf("response %d: links %q, want %s", i, links, older)
		}
	}
}

// A summary counts choices, numbers, dates and shows the latest texts.
func TestSummary(t *testing.T) {
	w := newSignedIn(t)
	campaign, err := w.svc.Campaigns.Create(t.Context(), w.account.ID, formsvc.CampaignInput{Title: "Sum", Modules: []formsvc.Module{
		{Name: "c", Label: "Pick", Type: "choice", Options: []string{"Red", "Blue"}, Multiple: true}, {Name: "b", Label: "Sure", Type: "boolean"},
		{Name: "n", Label: "Size", Type: "number"}, {Name: "d", Label: "Day", Type: "date"}, {Name: "t", Label: "Say", Type: "text"},
	}})
	w.must(err)
	answer := func(name string, values ...string) formsvc.Answer { return formsvc.Answer{Name: name, Value: values} }
	w.response(&campaign, "a", answer("c", "Red", "Blue"), answer("n", "1"), answer("d", "2026-10-05"), answer("t", "<i>first"))
	w.response(&campaign, "b", answer("c", "Red"), answer("b", "true"), answer("n", "4"), answer("t", "second"))
	w.response(&campaign, "c", answer("c"), answer("n", "1"))
	path := "/campaigns/" + string(campaign.ID)
	w.get(path+"/summary").is(200).says("All 3 responses", "Pick 2 answered", "Red 2 100 %", "Blue 1 50 %", "Yes 1 100 %", "No 0 0 %",
		"Sum 6 Average (mean) 2 Median 1 Least 1 Greatest 4", "1 2 67 %", "2026-10-05 1 100 %", "Say 2 answered. The latest, newest first: second <i>first").lacks("latest 12 months")
	campaign.Modules[0].Options = []string{"Red", "Blue", "Green"}
	_, err = w.svc.Campaigns.Replace(t.Context(), campaign.Key(), campaign.CampaignInput)
	w.must(err)
	w.get(path + "/summary").says("Green 0 0 %")
	for i := range 1200 {
		w.response(&campaign, "d", answer("n", fmt.Sprint(i%40*5+10)), answer("d", fmt.Sprintf("2025-%02d-01", i%12+1)))
	}
	w.pages.SetTimes(0, 0)
	w.get(path+"/summary").says("Counted 1 000 of 1 203 responses, as of", "Go on counting")
	w.get(path+"/summary").says("All 1 203 responses", "Median 105 Least 1 Greatest 205", "0 to 19 63 5 %", "20 to 39 120 10 %", "Say 2 answered.",
		"Day 1 201 answered. Shown by month. First 2025-01-01 Last 2026-10-05 By day week month Answer Responses Share 2025-01 100 8 %", "2026-09 0 0 %").lacks("<i>first", "newest first")
	w.submit(w.get(path+"/summary"), path+"/summary", nil).is(303).leadsTo(path + "/summary").says("Counted 1 000 of 1 203")
}

// An open page of a campaign is told about a new response, and of a webhook about its delivery, until Close.
func TestLive(t *testing.T) {
	w := newSignedIn(t)
	campaign, hook := w.campaign("Live"), w.hook(w.receiver(204, ""))
	var streams []*bufio.Reader
	for _, path := range []string{"/campaigns/" + string(campaign.ID), "/webhooks/" + string(hook.ID)} {
		if !strings.Contains(w.get(path).body, `data-live="/admin/console`+path+`/live"`) {
			t.Errorf("%s isn't live", path)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second) // a stream that isn't closed lasts longer
		t.Cleanup(cancel)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+path+"/live", nil)
		w.must(err)
		response, err := w.client.Do(r)
		w.must(err)
		t.Cleanup(func() { _ = response.Body.Close() })
		streams = append(streams, bufio.NewReader(response.Body))
		if line, err := streams[len(streams)-1].ReadString('\n'); line != "retry: 1000\n" {
			t.Fatalf("%s: %q, %v", path, line, err)
		}
	}
	w.response(&campaign, "ada")
	for i, stream := range streams {
		_, _ = stream.ReadString('\n')
		if line, err := stream.ReadString('\n'); line != "data: changed\n" {
			t.Errorf("stream %d: %q, %v", i, line, err)
		}
	}
	w.pages.Close()
	for i, stream := range streams {
		if _, err := io.ReadAll(stream); err != nil {
			t.Errorf("stream %d after Close: %v", i, err)
		}
	}
	w.get("/campaigns/" + string(campaign.ID)).is(200)
}
