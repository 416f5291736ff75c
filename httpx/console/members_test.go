package console_test

import (
	"bytes"
	"image"
	"image/png"
	"maps"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore/memblob"
	"github.com/formsvc/toolkit/formsvc"
)

// members notes the members of a value, and whether one of them is set anywhere.
func members(v reflect.Value, path string, set map[string]bool) {
	set[path] = set[path] || !v.IsZero()
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
	case v.Kind() == reflect.Pointer && !v.IsNil():
		members(v.Elem(), path, set)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			members(v.Index(i), path, set)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			members(v.Field(i), path+"."+v.Type().Field(i).Name, set)
		}
	}
}

// everyMember returns campaigns that have all members of CampaignInput, with texts that fields of a page can't have as they are.
func everyMember(logo []byte) []formsvc.CampaignInput {
	const odd, lines = " <b>&amp; “ö”\u00a0 ", " \n one\n\n two \n"
	modules := []module{
		{
			Name: " first name\n", Label: lines, Help: lines, Placeholder: odd, Type: "text", Required: true, MaxLength: 40, Multiple: true,
			Pattern: " ?[^\n]{1,}", PatternHelp: lines, Default: []string{" a ", "b"},
		},
		{
			Name: "pick", Label: odd, Type: "choice", Options: []string{"b", " a", "c,d"}, Labels: map[string]string{"b": " B ", "c,d": "c,d"},
			Places: map[string]int{"c,d": 3, " a": 1}, Other: true, MaxLength: 7, Multiple: true, Default: []string{"c,d", "own", "b"},
		},
		{Name: "page", Label: odd, Help: lines, Type: "section", Page: true, ShowIf: &formsvc.Condition{Module: "pick", Equals: []string{"c,d", " a"}}},
		{Name: "section", Type: "section"},
		{Name: "n", Type: "number", Min: "-1.50", Max: "1e3", Integer: false, Default: []string{"0.50"}, Placeholder: "7"},
		{Name: "whole", Type: "number", Integer: true, ShowIf: &formsvc.Condition{Module: " first name\n", Equals: []string{"b ", " a"}}},
		{Name: "at", Type: "time", Min: "08:00", Max: "09:00", Default: []string{"08:30"}}, {Name: "day", Type: "date", Min: "2026-01-01", Default: []string{"2026-02-03"}},
		{Name: "stars", Type: "rating", Min: "1", Max: "7", MinLabel: odd, MaxLabel: odd, Default: []string{"3"}},
		{Name: "scale", Type: "scale", Min: "-2", Max: "2", ShowIf: &formsvc.Condition{Module: "stars", Equals: []string{"7", "3"}}},
		{Name: "yes", Type: "boolean", Default: []string{"false"}}, {Name: "ok", Type: "consent", Required: true, ShowIf: &formsvc.Condition{Module: "yes", Equals: []string{"true"}}},
		{Name: "files", Type: "file", Accept: []string{".pdf", "image/*"}, Multiple: true, Required: true},
		{Name: "story", Type: "longtext", Default: []string{lines}, Placeholder: odd}, {Name: "tel", Type: "phone", Multiple: true, Default: []string{" 123456", "654321"}},
		{Name: "ref", Type: "text", Hidden: true, Format: "code", Default: []string{odd}}, {Name: "which", Type: "choice", Hidden: true, Options: []string{"x", "y"}},
		{Name: "mail", Type: "email", Pattern: ".*@example.com"}, {Name: "link", Type: "url", Default: []string{"https://example.com/?a=b&c"}},
	}
	first := formsvc.CampaignInput{
		Title: odd, Description: lines, Status: formsvc.CampaignClosed, OpensAt: time.Date(2026, 10, 25, 0, 30, 1, 2e6, time.UTC), ClosesAt: time.Date(2026, 10, 25, 1, 30, 7, 0, time.UTC),
		RequireName: true, Modules: modules, Metadata: map[string]string{odd: lines}, TimeZone: "Europe/Berlin", Workflow: "short",
		Form: formsvc.Form{
			Enabled: true, Description: lines, SuccessMessage: lines, RedirectURL: "https://example.com/?r={reference}", AllowedOrigins: []string{"https://b.example", "http://a.example:8080"},
			Language: "tr", MaxResponses: 1000, OncePerEmail: true, Prefill: []string{"which", "email", " first name\n", "ref", "lastName"},
			Texts:        formsvc.FormTexts{Button: odd, ThanksTitle: lines, Closed: lines, Full: lines},
			Theme:        formsvc.FormTheme{Accent: "#ffcc00", Scheme: "dark", Width: "wide", Logo: logo, LogoAlt: odd, Cover: logo},
			Confirmation: formsvc.Confirmation{Enabled: true, Subject: odd, Text: lines, ReplyTo: "ada@example.com", Answers: true},
		},
	}
	second := first
	second.RequireName, second.Form.HideName, second.EmailOptional, second.Form.OncePerEmail, second.Status = false, true, true, false, formsvc.CampaignOpen
	return []formsvc.CampaignInput{first, second}
}

// Each form of the pages changes what it is for. It keeps every other member of the campaign, even those that the page has no field for.
func TestFormsKeepEveryMember(t *testing.T) {
	w := newWorld(t, nil)
	var err error
	w.svc, err = formsvc.New(w.store, &formsvc.Options{
		Blobs: memblob.New(), Now: w.clock, Formats: map[string]formsvc.Format{"code": {}},
		Workflows: map[string]*formsvc.Workflow{"short": {Final: []string{"pending"}}},
	})
	w.must(err)
	w.serve(nil)
	w.signIn()
	var picture bytes.Buffer
	w.must(png.Encode(&picture, image.NewGray(image.Rect(0, 0, 20, 10))))
	logo, err := w.svc.Campaigns.Picture(t.Context(), "logo", picture.Bytes())
	w.must(err)
	inputs := everyMember(logo)
	set := map[string]bool{}
	members(reflect.ValueOf(inputs), "", set)
	maps.DeleteFunc(set, func(name string, is bool) bool { return is || name == ".IfVersion" })
	if len(set) > 0 {
		t.Fatalf("no campaign has %v: give one a value that its forms must keep", set)
	}
	for i, in := range inputs {
		c, err := w.svc.Campaigns.Create(t.Context(), w.account.ID, in)
		w.must(err)
		path := "/campaigns/" + string(c.ID)
		same := func(what string, id formsvc.ID, change func(*formsvc.CampaignInput)) {
			t.Helper()
			want, got := c.CampaignInput, must(w.svc.Campaigns.Get(t.Context(), formsvc.CampaignKey{AccountID: w.account.ID, ID: id})).CampaignInput
			change(&want)
			for at := range reflect.TypeOf(got).NumField() {
				name, a, b := reflect.TypeOf(got).Field(at).Name, reflect.ValueOf(got).Field(at).Interface(), reflect.ValueOf(want).Field(at).Interface()
				if !reflect.DeepEqual(a, b) && name != "Modules" {
					t.Errorf("%d: %s: %s is\n%+q, want\n%+q", i, what, name, a, b)
				}
			}
			for at, m := range got.Modules {
				if !reflect.DeepEqual(m, want.Modules[at]) {
					t.Errorf("%d: %s: a question is\n%+v, want\n%+v", i, what, m, want.Modules[at])
				}
			}
		}
		nothing := func(*formsvc.CampaignInput) {}
		title := func(in *formsvc.CampaignInput) { in.Title = "New" }
		unlisted := func(in *formsvc.CampaignInput) { in.Form.Enabled = false }
		w.submit(w.get(path+"/edit").is(200), path+"/edit", url.Values{"title": {"New"}}).is(303)
		same("edit", c.ID, title)
		page := w.submit(w.get(path+"/edit").is(200), path+"/edit", url.Values{"title": {in.Title}, "do": {"stay.1"}}).is(200)
		w.submit(page, path+"/edit", url.Values{"do": {"save"}}).is(303)
		same("edit, shown twice", c.ID, func(in *formsvc.CampaignInput) { in.Title = strings.TrimSpace(in.Title) })
		_, err = w.svc.Campaigns.Replace(t.Context(), c.Key(), in)
		w.must(err)
		w.submit(w.get(path+"/share"), path+"/share", nil).is(303)
		same("share", c.ID, nothing)
		w.submit(w.get(path+"/share"), path+"/site", url.Values{"site": {"https://b.example"}}).is(303)
		same("site", c.ID, nothing)
		w.submit(w.get(path+"/mail"), path+"/mail", nil).is(303)
		same("mail", c.ID, nothing)
		for range 2 {
			w.submit(w.get(path), path+"/state", nil).is(303)
		}
		same("state", c.ID, nothing)
		w.submit(w.get(path+"/share"), path+"/rotate", nil).is(303)
		same("rotate", c.ID, nothing)
		w.submit(w.get(path), path+"/duplicate", nil).is(303)
		copied := must(w.svc.Campaigns.List(t.Context(), formsvc.CampaignQuery{AccountID: w.account.ID})).Items[0]
		same("duplicate", copied.ID, func(in *formsvc.CampaignInput) { in.Title, in.Form.Enabled = copied.Title, false })
		path = "/campaigns/" + string(copied.ID)
		w.submit(w.get(path+"/share"), path+"/share", nil).is(303)
		same("published", copied.ID, func(in *formsvc.CampaignInput) { in.Title = copied.Title })

		file := w.get("/campaigns/" + string(c.ID) + "/form-file").is(200).body
		made := w.submit(w.open(file), "/campaigns", nil).is(303).header.Get("Location")
		made, _, _ = strings.Cut(strings.TrimPrefix(made, "/admin/console/campaigns/"), "/")
		same("form file", formsvc.ID(made), unlisted)
	}
}

// A change of nothing but line breaks is a change.
func TestLineBreaksAreChanges(t *testing.T) {
	w := newSignedIn(t)
	in := formsvc.CampaignInput{Title: "c", Description: "ab", Form: formsvc.Form{Enabled: true}, Modules: []module{{Name: "story", Type: "longtext", Default: []string{"ab"}}}}
	c := must(w.svc.Campaigns.Create(t.Context(), w.account.ID, in))
	path := "/campaigns/" + string(c.ID)
	w.submit(w.get(path+"/edit"), path+"/edit", url.Values{"description": {"a\nb"}, "default.0": {"a\n\nb"}}).is(303)
	w.submit(w.get(path+"/share"), path+"/share", url.Values{"description": {"a\nb"}, "full": {"\na\n\nb"}}).is(303)
	got := must(w.svc.Campaigns.Get(t.Context(), c.Key()))
	if got.Description != "a\nb" || got.Modules[0].Default[0] != "a\n\nb" || got.Form.Description != "a\nb" || got.Form.Texts.Full != "a\n\nb" {
		t.Errorf("got %q, %q and %+v", got.Description, got.Modules[0].Default, got.Form)
	}

	// What other pages set stays if the editor was open meanwhile.
	edit := w.get(path + "/edit")
	w.submit(w.get(path+"/mail"), path+"/mail", url.Values{"text": {"Bye"}}).is(303)
	edit = w.submit(edit, path+"/edit", nil).is(409).says("They are kept. Save again.")
	w.submit(edit, path+"/edit", url.Values{"title": {"New"}}).is(303)
	if got = must(w.svc.Campaigns.Get(t.Context(), c.Key())); got.Title != "New" || got.Form.Confirmation.Text != "Bye" || got.Form.Texts.Full != "a\n\nb" {
		t.Errorf("got %+v", got)
	}
}
