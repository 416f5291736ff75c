package intake_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func prefilled() formsvc.CampaignInput {
	in := formsvc.CampaignInput{EmailOptional: true, Form: formsvc.Form{Language: "de", Prefill: []string{"email", "firstName", "n", "d", "t", "pick", "many", "yes", "iban", "source", "kind", "via", "long"}}}
	in.Modules = []formsvc.Module{
		{Name: "n", Type: formsvc.NumberModule, Min: "0"}, {Name: "d", Type: formsvc.DateModule}, {Name: "t", MaxLength: 5, Default: []string{"start"}}, {Name: "other"},
		{Name: "pick", Type: formsvc.ChoiceModule, Options: []string{"a", "b"}, Labels: map[string]string{"b": "Bee"}},
		{Name: "many", Type: formsvc.ChoiceModule, Options: []string{"x", "y", "z"}, Multiple: true}, {Name: "yes", Type: formsvc.BooleanModule},
		{Name: "iban", Format: "iban"}, {Name: "source", Hidden: true}, {Name: "kind", Type: formsvc.ChoiceModule, Options: []string{"k", "l"}, Hidden: true, Default: []string{"k"}},
		{Name: "via", Type: formsvc.ChoiceModule, Options: []string{"k"}, Hidden: true, Other: true},
		{Name: "long", Type: formsvc.LongTextModule}, {Name: "ok", Type: formsvc.ConsentModule},
		{Name: "why", Required: true, ShowIf: &formsvc.Condition{Module: "source", Equals: []string{"fair"}}},
	}
	return in
}

// The address fills in the fields that the owner named, in the API's form or as the language writes them. Values that don't fit are ignored.
func TestPrefill(t *testing.T) {
	w := newWorld(t, prefilled(), nil, func(o *formsvc.Options) {
		o.Formats = map[string]formsvc.Format{"iban": {Check: func(s string) error {
			if s != "DE1" {
				return formsvc.ErrInvalid
			}
			return nil
		}}}
	})
	for query, want := range map[string]string{
		"email=ada%40example.com": `name="email" value="ada@example.com"`, "email=ada": `name="email" value=""`, "email=a%40b.de&email=c%40d.de": `name="email" value=""`,
		"firstName=Zo%C3%AB": `name="firstName" value="Zoë"`, "lastName=x": `name="lastName" value=""`, "firstName=" + strings.Repeat("x", 201): `name="firstName" value=""`,
		"n=1.234": `name="n" value="1,234"`, "n=1.234,5": `name="n" value="1234,5"`, "n=-1": `name="n" value=""`, "n=x": `name="n" value=""`, "n=%2B1.234": `name="n" value=""`, "n=1%2C5": `name="n" value="1,5"`,
		"d=2026-11-29": `type="date" name="d" value="2026-11-29"`, "d=29.+November+2026": `type="date" name="d" value="2026-11-29"`, "d=29.2.2026": `type="date" name="d" value=""`,
		"t=abc": `name="t" value="abc"`, "t=abcdef": `name="t" value="start"`, "t=a%0Ab": `name="t" value="start"`, "t=%00": `name="t" value="start"`, "t=%FF": `name="t" value="start"`, "t=": `name="t" value="start"`,
		"t=%22%3E%3Cb": `name="t" value="&#34;&gt;&lt;b"`, "other=x": `name="other" value=""`, "unknown=x": `name="other" value=""`, "t=%zz": `name="t" value="start"`, "t=a;b": `name="t" value="start"`,
		"pick=b": `value="b" checked`, "pick=Bee": `value="b" checked`, "pick=c": `value="" checked`, "pick=a&pick=b": `value="" checked`, "pick=b&pick=Bee": `value="b" checked`,
		"many=x&many=q&many=z": `value="x" id="q9" checked`, "yes=true": `value="true" id="q10" checked`, "iban=DE1": `name="iban" value="DE1"`, "iban=DE2": `name="iban" value=""`,
		"source=mail": `<input type="hidden" name="source" value="mail">`, "kind=l": `<input type="hidden" name="kind" value="l">`, "kind=z": `<input type="hidden" name="kind" value="k">`, "via=a+friend": `<input type="hidden" name="via" value="a friend">`,
		"long=a%0Ab": ">\na\nb</textarea>", "ok=true": `name="ok" value="true" id=`, "t=x&long=" + strings.Repeat("x", 17<<10): `name="t" value="start"`, strings.Repeat("many=x&", 101): `value="x" id="q9">`,
	} {
		a := w.get("?" + query).is(200).has(want)
		if strings.Contains(a.body, `name="source" value=""`) || strings.Contains(a.body, `class="error"`) || a.header.Get("Cache-Control") != "private, no-cache" {
			t.Errorf("%s: %s %v", query, a.body, a.header)
		}
	}
	w.get("").has(`name="t" value="start"`, `<input type="hidden" name="kind" value="k">`)
	if to := w.get("/?t=abc").is(302).header.Get("Location"); !strings.HasSuffix(to, "?t=abc") {
		t.Error(to)
	}

	// They are a visitor's input: what is typed wins, and all is checked again.
	page := w.get("?t=abc&source=mail").token()
	w.wait(3 * time.Second)
	wrong := w.post("_page", page, "t", "typed", "source", "mail", "kind", "zzz", "via", "a friend", "n", "1,5").is(422)
	if strings.Contains(wrong.body, "zzz") {
		t.Error("a hidden value that nobody can correct comes again")
	}
	wrong.has("kind\u2069 – ", `name="via" value="a friend"`, `name="t" value="typed"`, `name="source" value="mail"`, `<li>`)
	w.post("_page", page, "t", "typed", "source", "mail", "kind", "l", "n", "1,5").is(303)
	w.json(`{"responses":{"source":{"value":["api"]}}}`).is(201)
	w.json(`{"responses":{"kind":{"value":["zzz"]}}}`).is(422)
	w.get("?source=fair").has(`data-if="source"`)
	w.post("source", "fair").is(422) // a condition holds for it
	if got := w.stands(); len(got) != 2 || got[0] != `{"t":{"value":["typed"]},"source":{"value":["mail"]},"kind":{"value":["l"]},"n":{"value":["1.5"]}}` {
		t.Errorf("%q", got)
	}
}

// A large page that the address fills in isn't kept for others.
func TestPrefilledPageIsForOneVisitor(t *testing.T) {
	in := prefilled()
	in.Modules[7].Format = ""
	for i := range 200 {
		in.Modules = append(in.Modules, formsvc.Module{Name: strings.Repeat("m", i+1), Help: strings.Repeat("long ", 100)})
	}
	w := newWorld(t, in, nil)
	for range 2 {
		if w.get("?t=mine").is(200).has(`value="mine"`); len(w.get("").is(200).body) < 64<<10 {
			t.Error("the page is small")
		}
		if a := w.get(""); strings.Contains(a.body, "mine") {
			t.Error("a page is shown to others")
		}
	}
}

// The owner's words take the place of the page's, and the owner's address gets the reference.
func TestOwnWords(t *testing.T) {
	in := formsvc.CampaignInput{EmailOptional: true, Modules: []formsvc.Module{{Name: "a"}}, Form: formsvc.Form{
		Language: "pl", RedirectURL: "https://example.com/{reference}?of={reference}#{x}",
		Texts: formsvc.FormTexts{Button: "Zgłoś <się>", ThanksTitle: "Do zobaczenia", Closed: "Koniec\nzapisów", Full: "Brak miejsc"},
	}}
	w := newWorld(t, in, nil, func(o *formsvc.Options) {
		o.NewReference = func() string { return "A&B/1 2" }
	})
	w.get("", "Accept-Language", "ja").is(200).has(`<html lang="pl"`, "<button>Zgłoś &lt;się&gt;</button>")
	w.get("/thanks").is(200).has("<h1 dir=\"auto\">Do zobaczenia</h1>", "Odpowiedzi zostały wysłane.")
	if to := w.post("a", "x").is(303).header.Get("Location"); to != "https://example.com/A%26B%2F1%202?of=A%26B%2F1%202#{x}" {
		t.Error(to)
	} else if _, err := url.Parse(to); err != nil {
		t.Error(err)
	}
	for _, edit := range []func(*formsvc.CampaignInput){
		func(in *formsvc.CampaignInput) { in.Status = formsvc.CampaignClosed }, func(in *formsvc.CampaignInput) { in.ClosesAt = w.now.Load().Add(-time.Hour) },
	} {
		closed := w.campaign.CampaignInput
		edit(&closed)
		if _, err := w.svc.Campaigns.Replace(t.Context(), w.campaign.Key(), closed); err != nil {
			t.Fatal(err)
		}
		w.wait(2 * time.Second)
		w.get("").is(409).has("Ten formularz jest zamknięty", "Koniec\nzapisów")
		w.post("a", "x").is(409).has("Koniec\nzapisów", "Odpowiedzi nie zostały zapisane")
	}
}
