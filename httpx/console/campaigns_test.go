package console_test

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
)

// Visitors browse and filter responses, read one, and change it.
func TestCampaignsAndResponses(t *testing.T) {
	w := newSignedIn(t)
	w.get("/campaigns").is(200).says("No campaigns yet", "curl")
	w.get("/").is(200).says("No responses yet", "First steps", "Generate an API key")
	campaign := w.campaign("Bicycle survey")
	path := "/campaigns/" + string(campaign.ID)
	w.get("/campaigns").says("1 total", "Bicycle survey", "open")
	w.get(path).is(200).says("No responses yet", "/v1/campaigns/"+string(campaign.ID)+"/responses")
	r := w.response(&campaign, "Ada", formsvc.Answer{Name: "color", Value: []string{"red", "blue"}})
	other := w.response(&campaign, "Grace")
	file, err := w.svc.Files.Upload(t.Context(), r.Key(), formsvc.FileInput{
		Name: "passport.txt", ContentType: "text/plain", Content: strings.NewReader("the bytes of a file"),
	})
	w.must(err)
	w.get("/").says(r.Reference, other.Reference, "Bicycle survey", "file.uploaded")
	w.get(path).says("Ada", "Grace", "2 responses")
	w.get(path+"?reference="+r.Reference).says("Ada", "Show all").lacks("Grace")
	w.get(path+"?status=pending&email=ada%40example.com").says("Ada", "Grace")
	w.get(path + "?status=done").says("No matching responses.")
	w.get(path + "?createdAfter=" + w.clock().Add(time.Hour).UTC().Format("2006-01-02T15:04")).says("No matching responses.")
	w.get(path + "?createdBefore=" + w.clock().Add(24*time.Hour).UTC().Format("2006-01-02")).says("Ada")
	w.get(path+"?createdAfter=soon").is(200).says("Enter a date such as", "Ada")
	w.get(path + "?email=%ff").is(400)

	one := path + "/responses/" + string(r.ID)
	_, err = w.svc.Responses.Update(t.Context(), r.Key(), formsvc.ResponsePatch{Metadata: map[string]*string{"crm <b>": new("4711 & more")}})
	w.must(err)
	w.get(one).is(200).says("ada@example.com", "Metadata", "crm <b>", "4711 & more", "color", "red", "blue", "passport.txt", "19 B", "No comments", "Submitted", "File added", "pending")
	if a := w.get("/files/" + string(file.ID)).is(200); a.body != "the bytes of a file" || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment") {
		t.Errorf("file %v %s", a.header, a.body)
	}
	w.get(one).lacks("<iframe")
	for name, kind := range map[string]string{"cv.pdf": "application/pdf", "cv.html": "text/html"} {
		file, err := w.svc.Files.Upload(t.Context(), r.Key(), formsvc.FileInput{Name: name, ContentType: kind, Content: strings.NewReader("%PDF")})
		w.must(err)
		a, saved := w.get("/files/"+string(file.ID)+"?show=1").is(200), w.get("/files/"+string(file.ID)).is(200)
		if shown := strings.HasPrefix(a.header.Get("Content-Disposition"), "inline"); shown != (name == "cv.pdf") || !shown != strings.Contains(a.header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %v", name, a.header)
		}
		if !strings.HasPrefix(saved.header.Get("Content-Disposition"), "attachment") || !strings.Contains(saved.header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %v", name, saved.header)
		}
	}
	if a := w.get(one).says("Show cv.pdf").lacks("Show cv.html"); !strings.HasSuffix(a.header.Get("Content-Security-Policy"), "; frame-src 'self'") {
		t.Errorf("policy %s", a.header.Get("Content-Security-Policy"))
	}
	w.submit(w.get(one), one+"/status", url.Values{"status": {"validated"}}).is(303).leadsTo(one).says("Status changed", "validated", "Status changed to validated")
	w.submit(w.get(one), one+"/status", url.Values{"status": {"not\ta status"}}).is(422)
	page := w.get(one)
	comment := url.Values{"body": {"Called her.\nAll <well>."}}
	w.submit(page, one+"/comments", comment).is(303).leadsTo(one).says("Comment added", "Called her. All <well>.", "console")
	w.submit(page, one+"/comments", comment).is(303) // a double click
	equal(t, strings.Count(w.get(one).body, "Called her."), 1, "the comment is there %d times")
	w.submit(page, one+"/comments", url.Values{"body": {" "}, "once": {"other"}}).is(422)

	w.get(path + "/responses/" + string(other.ID)).lacks("Metadata")
	doomed := w.response(&campaign, "Mary")
	page = w.get(path + "/responses/" + string(doomed.ID)).says("This can't be undone")
	w.submit(page, path+"/responses/"+string(doomed.ID)+"/delete", nil).is(303).leadsTo(path).says("Response deleted", "2 responses").lacks("Mary")
	w.submit(page, path+"/responses/"+string(doomed.ID)+"/delete", nil).is(404)
	audit, err := w.svc.Audits.List(t.Context(), formsvc.AuditQuery{AccountID: w.account.ID, Action: formsvc.AuditResponseDeleted})
	if err != nil || len(audit.Items) != 1 || audit.Items[0].Target != doomed.ID || audit.Items[0].Actor != "console" {
		t.Errorf("audit trail %+v, %v", audit.Items, err)
	}

	csv := w.get(path + "/export/responses.csv?reference=" + r.Reference).is(200)
	if name := csv.header.Get("Content-Disposition"); strings.Count(csv.body, "\n") != 2 || name != `attachment; filename="responses-`+string(campaign.ID)+`.csv"` {
		t.Errorf("csv %v\n%s", csv.header, csv.body)
	}
	if a := w.get(path + "/export/responses.ndjson").is(200); strings.Count(a.body, "\n") != 2 {
		t.Errorf("ndjson %s", a.body)
	}
	w.get(path + "/export/responses.xml").is(404)
	equal(t, w.get(path+"/export/responses.csv?createdAfter=soon").is(400).header.Get("Content-Disposition"), "", "a failed export is saved as %q")
	equal(t, csv.header.Get("X-Ratelimit-Limit"), "", "looking at pages counts for the quota: %v")
}

// A workflow limits the statuses to choose from.
func TestWorkflowLimitsStatuses(t *testing.T) {
	w := newSignedIn(t)
	svc, err := formsvc.New(w.store, &formsvc.Options{Now: w.clock, Workflow: &formsvc.Workflow{
		Statuses: []string{"review", "done"}, Transitions: map[string][]string{"pending": {"review"}, "review": {"done"}}, Final: []string{"done"},
	}})
	w.must(err)
	w.svc = svc
	w.serve(nil)
	w.signIn()
	campaign := w.campaign("Review")
	r := w.response(&campaign, "Ada")
	one := "/campaigns/" + string(campaign.ID) + "/responses/" + string(r.ID)
	page := w.get(one).is(200).says("No files") // without a blob store
	w.submit(page, one+"/status", url.Values{"status": {"done"}}).is(409).says("can't change from pending to done", "It can change to: review")
	for _, next := range []string{"review", "done"} {
		if !strings.Contains(w.get(one).body, `<button class="plain" name="status" value="`+next+`">`) {
			t.Errorf("no button for %s", next)
		}
		w.submit(w.get(one), one+"/status", url.Values{"status": {next}}).is(303)
	}
	w.get(one).says("the status is final")
	w.submit(page, one+"/status", url.Values{"status": {"pending"}}).is(409).says("It's final")
}

// Long lists have several pages, each of limited length.
func TestLongLists(t *testing.T) {
	w := newSignedIn(t)
	campaign := w.campaign("Long")
	hook := w.hook(w.receiver(500, ""))
	for i := range 60 {
		w.response(&campaign, fmt.Sprint("person-", i))
	}
	for range 60 {
		w.campaign(strings.Repeat("title ", 80))
	}
	w.drain()
	for path, item := range map[string]string{
		"/campaigns/" + string(campaign.ID): "/campaigns/" + string(campaign.ID) + "/responses/", "/campaigns": "/campaigns/",
		"/webhooks/" + string(hook.ID): "/deliveries/", "/failures": "/deliveries/",
	} {
		seen, next, pages := map[string]bool{}, path, 0
		for next != "" {
			a := w.get(next).is(200)
			if len(a.body) > 60_000 {
				t.Errorf("%s: %d bytes", next, len(a.body))
			}
			for _, link := range a.links() {
				if strings.HasPrefix(link, item) && link != "/campaigns/new" {
					seen[link] = true
				}
			}
			pages++
			next = a.next(path)
		}
		if pages != 3 || len(seen) < 60 || len(seen) > 61 {
			t.Errorf("%s: %d on %d pages", path, len(seen), pages)
		}
	}
	w.get("/campaigns?after=x").is(200)
}

// next returns the address of the next page of a list, or "".
func (a *answer) next(path string) string {
	for n := range a.page.Descendants() {
		if attribute(n, "rel") == "next" {
			return path + attribute(n, "href")
		}
	}
	return ""
}

// A page of a search ends when its time is over, and the pages together miss no response.
func TestSearchGoesOnInSteps(t *testing.T) {
	w := newSignedIn(t)
	w.pages.SetTimes(0, 0)
	campaign := w.campaign("Long")
	want := map[string]bool{}
	for i := range 1100 {
		if i%200 == 3 || i > 30 && i < 60 {
			want[string(w.response(&campaign, "Zoé").ID)] = true
		} else {
			w.response(&campaign, "Ada")
		}
	}
	path := "/campaigns/" + string(campaign.ID)
	seen, pages := map[string]bool{}, 0
	for next := path + "?search=ZO%C3%89"; next != ""; pages++ {
		a := w.get(next).is(200)
		next = a.next(path)
		for n := range a.page.Descendants() {
			if _, id, ok := strings.Cut(attribute(n, "href"), "/responses/"); ok {
				seen[id[:36]] = true
			}
		}
		if pages > 10 {
			t.Fatal("there is no end")
		}
	}
	if !maps.Equal(seen, want) || pages != 6 {
		t.Errorf("%d pages: %d of %d", pages, len(seen), len(want))
	}
	first := w.get(path+"?search=none").says("Searched 250 responses", "No matching responses so far")
	w.get(first.next(path)).says("Searched 500 responses")
	w.get(path + "?search=none&createdBefore=2020-01-01").says("No matching responses.")
	w.pages.SetTimes(time.Hour, 0)
	w.get(path + "?search=none").says("No matching responses.").lacks("Searched")
}

// A fullStore takes no more campaigns.
type fullStore struct {
	*memory.Store

	err error
}

func (s fullStore) CreateCampaign(context.Context, formsvc.Campaign, formsvc.Change) error {
	return s.err
}

// A store's own limits are told as it says them.
func TestFullStore(t *testing.T) {
	w := newWorld(t, nil)
	for _, x := range []struct {
		err    error
		status int
		says   string
	}{
		{&formsvc.LimitError{Kind: "campaigns", Limit: 3}, 409, "The account may have at most 3 campaigns."},
		{&formsvc.LimitError{Kind: "seats"}, 409, "The account has reached its limit of seats."},
		{fmt.Errorf("plan: %w", formsvc.ErrQuota), 429, "used up its quota"},
	} {
		svc, err := formsvc.New(fullStore{w.store, x.err}, nil)
		w.must(err)
		w.svc = svc
		w.serve(nil)
		w.signIn()
		a := w.submit(w.get("/campaigns"), "/campaigns/sample", nil).is(x.status).says(x.says)
		if got := a.header.Get("Retry-After"); (got != "") != (x.status == 429) {
			t.Errorf("Retry-After: %q", got)
		}
	}
}
