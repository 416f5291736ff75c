package console_test

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// open uploads a form file on the page of a new campaign.
func (w *world) open(file string) *answer {
	w.t.Helper()
	form := w.get("/campaigns/new").is(200).form("/campaigns/new")
	form.Set("do", "open")
	return w.upload("/campaigns/new", form, "file", []byte(file))
}

// upload sends a form with a file, unless that is nil.
func (w *world) upload(path string, form url.Values, name string, file []byte) *answer {
	w.t.Helper()
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	for name, values := range form {
		for _, value := range values {
			w.must(m.WriteField(name, value))
		}
	}
	for _, name := range strings.Fields(name) {
		if file == nil {
			break
		}
		_, err := must(m.CreateFormFile(name, "a.form.json")).Write(file)
		w.must(err)
	}
	w.must(m.Close())
	return w.do("POST", path, nil, func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(&body), int64(body.Len())
		r.Header.Set("Content-Type", m.FormDataContentType())
		r.Header.Set("Origin", w.server.URL)
	})
}

// created submits the form of a new campaign and returns what was stored.
func (w *world) created(page *answer) formsvc.CampaignInput {
	w.t.Helper()
	page = w.submit(page.is(200), "/campaigns", url.Values{"do": {"stay"}}).is(200)
	id, _, _ := strings.Cut(strings.TrimPrefix(w.submit(page, "/campaigns", nil).is(303).header.Get("Location"), "/admin/console/campaigns/"), "/")
	c, err := w.svc.Campaigns.Get(w.t.Context(), formsvc.CampaignKey{AccountID: w.account.ID, ID: formsvc.ID(id)})
	w.must(err)
	return c.CampaignInput
}

// A form that is downloaded and opened again is the same, whatever its questions and settings are.
func TestFormFile(t *testing.T) {
	w := newSignedIn(t)
	odd := "  Größe \u202e <b> & \" \\ 尺寸\u2028 "
	at := time.Date(2026, 11, 21, 8, 30, 1, 123e6, time.UTC)
	bounded := []formsvc.Module{
		{Name: "n", Label: odd, Type: "number", Min: "-0.10", Max: "1e3", Integer: true, Default: []string{"7"}}, {Name: "d", Type: "date", Min: "2026-01-01", Max: "2026-12-31"},
		{Name: "f", Type: "file", Accept: []string{"image/*", ".pdf"}, Multiple: true}, {Name: "t", Default: []string{" a", "b"}, Multiple: true, Placeholder: odd, MaxLength: 9},
		{Name: "c", Type: "choice", Options: []string{" x", "y "}, Labels: map[string]string{"y ": odd}, Default: []string{" x"}}, {Name: "l", Type: "longtext", Default: []string{"a\n\nb"}},
		{Name: "h", Hidden: true, Default: []string{"x"}}, {Name: odd, Help: odd, Type: "boolean", Required: true, ShowIf: &formsvc.Condition{Module: "c", Equals: []string{"y "}}},
	}
	for _, in := range []formsvc.CampaignInput{
		{Title: "Plain"}, {Title: odd, Modules: everyKind(odd), RequireName: true},
		{Title: "Bounds / \"quoted\"", Description: odd, Status: formsvc.CampaignClosed, OpensAt: at, ClosesAt: at.Add(time.Hour), EmailOptional: true, Modules: bounded, Metadata: map[string]string{odd: odd, "b": ""}, Form: formsvc.Form{
			Enabled: true, Description: odd, SuccessMessage: odd, RedirectURL: "https://example.com/?a=b&c", AllowedOrigins: []string{"https://a.example"}, Language: "de", HideName: true, Texts: formsvc.FormTexts{Button: "Go", ThanksTitle: odd, Closed: odd, Full: odd}, Prefill: []string{odd, "email", "n", "h"},
		}},
	} {
		c := must(w.svc.Campaigns.Create(t.Context(), w.account.ID, in))
		file := w.get(w.get("/campaigns/" + string(c.ID) + "/edit").linkTo("/campaigns/" + string(c.ID) + "/form-")).is(200)
		_, names, err := mime.ParseMediaType(file.header.Get("Content-Disposition"))
		if err != nil || names["filename"] != in.Title+".form.json" || strings.Contains(file.body, c.FormToken) == (c.FormToken != "") || strings.Contains(file.body, string(c.ID)) {
			t.Errorf("%v, %v: %s", names, err, file.body)
		}
		want := c.CampaignInput
		want.Form.Enabled = false
		if got := w.created(w.open(file.body).says("nothing is saved yet")); !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v\nfrom %s", got, want, file.body)
		}
	}
}

// A file that isn't a form is refused with what is wrong in it.
func TestBadFormFile(t *testing.T) {
	w := newSignedIn(t)
	for file, says := range map[string]string{
		"": "The file must be a JSON object", "PK\x03\x04": "The file is not JSON from byte 0 on", `{"title":"x"`: "ends too early", `{}`: "title: must not be empty",
		`{"title":"x","colour":"red"}`: "colour: is an unknown field", `{"title":"x","form":{"token":"a"}}`: "form/token: is an unknown field",
		`{"title":"x","modules":[{"name":"a"},{"name":"b","showIf":{"module":"a","equal":[]}}]}`: "question 2/showIf/equal: is an unknown field",
		`{"title":"x","modules":[{"name":"a","type":"colour"}]}`:                                 "question 1/type: must be one of text",
		`{"title":"x","modules":[{"name":"a","required":"yes"}]}`:                                "question 1/required: must be true or false",
		`{"title":"x","title":"y"}`:                                                              "title: The field appears twice",
		`{"title":"x","modules":[` + strings.Repeat(`{"name":"a"},`, 60) + `{"name":"a"}]}`:      "must be unique",
		`{"title":"x","modules":[{"name":"a","type":"choice","options":["a\nb"]}]}`:              "can't show all choices",
	} {
		w.open(file).is(422).says("Choose a form file. This one can't be opened: ", says, "Start from")
	}
	w.submit(w.get("/campaigns/new"), "/campaigns/new", url.Values{"do": {"open"}}).is(422).says("Choose a form file.")
	w.submit(w.get("/campaigns/new"), "/campaigns/new", url.Values{"do": {"../start-job"}}).is(422)
}

// Each template that is offered can be created as it is.
func TestTemplates(t *testing.T) {
	w := newSignedIn(t)
	for name, questions := range map[string]int{"contact": 4, "event": 6, "feedback": 5, "job": 8, "order": 8} {
		page := w.get("/campaigns/new").is(200)
		if !strings.Contains(page.body, `value="`+name+`"`) {
			t.Errorf("%s isn't offered", name)
		}
		got := w.created(w.submit(page, "/campaigns/new", url.Values{"do": {name}}))
		if len(got.Modules) != questions || got.Form.SuccessMessage == "" || got.Form.Enabled {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A pasted list becomes questions whose types are guessed, in a new campaign and below the questions of an old one.
func TestPastedList(t *testing.T) {
	w := newSignedIn(t)
	const list = "  1. Your name: *\n  2) E-mail address*\r\n\n  Date of birth?\n  Phone number\n  Number of guests\n  Meal *: Meat / Fish / Vegan\n" +
		"  Vegetarian: yes/no\n  Colour\n    - Red\n\t* Blue *\n  Size:\n   S\n   M\n  Website: https://example.com\n  Your CV\n  Update\n  Any comments?\n" +
		"  Time of arrival\n  How satisfied are you?\n  I agree to the terms *\n" +
		"# About you\n## Pet\n- Cat\n- Other (say which)\nBook: Red / Other\n"
	show := func(c formsvc.CampaignInput) (text string) {
		for _, m := range c.Modules {
			text += fmt.Sprint(m.Label, "|", m.Type, "|", m.Required, "|", strings.Join(m.Options, ","), map[bool]string{true: " and others"}[m.Other], "\n")
		}
		return text
	}
	const want = "Your name|text|true|\nE-mail address|email|true|\nDate of birth?|date|false|\nPhone number|phone|false|\nNumber of guests|number|false|\n" +
		"Meal|choice|true|Meat,Fish,Vegan\nVegetarian|boolean|false|\nColour|choice|false|Red,Blue *\nSize|choice|false|S,M\n" +
		"Website: https://example.com|text|false|\nYour CV|file|false|\nUpdate|text|false|\nAny comments?|longtext|false|\n" +
		"Time of arrival|text|false|\nHow satisfied are you?|rating|false|\nI agree to the terms|consent|true|\n" +
		"About you|section|false|\n## Pet|choice|false|Cat and others\nBook|choice|false|Red,Other\n"
	page := w.submit(w.get("/campaigns/new"), "/campaigns/new", url.Values{"do": {"paste"}, "list": {list}}).is(200).says("Questions read from the list: 19.")
	equal(t, show(w.created(w.submit(page, "/campaigns", url.Values{"do": {"stay"}, "title": {"Pasted"}}))), want, "the list is %s")
	w.submit(w.get("/campaigns/new"), "/campaigns/new", url.Values{"do": {"paste"}, "list": {" \n-\n"}}).is(422).says("has 0 questions, and must have 1 to 60")

	c := must(w.svc.Campaigns.Create(t.Context(), w.account.ID, formsvc.CampaignInput{Title: "Old", Modules: []formsvc.Module{{Name: "a", Label: "First"}}}))
	path := "/campaigns/" + string(c.ID) + "/edit"
	page = w.submit(w.get(path), path, url.Values{"do": {"paste"}, "list": {strings.Repeat("a\n", 60)}}).is(200).says("has 60 questions, and must have 1 to 59", "None was added", "a a a")
	page = w.submit(page, path, url.Values{"do": {"paste"}, "list": {"- More\n- Amount"}}).is(200).says("Questions read from the list: 2.")
	w.submit(page, path, nil).is(303)
	c = must(w.svc.Campaigns.Get(t.Context(), c.Key()))
	equal(t, show(c.CampaignInput), "First|text|false|\nMore|text|false|\nAmount|number|false|\n", "the old campaign has %s")
}
