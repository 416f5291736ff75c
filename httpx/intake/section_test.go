package intake_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// party is a form of three pages, whose second one has no question for those who bring something of their own.
func party() formsvc.CampaignInput {
	return formsvc.CampaignInput{EmailOptional: true, Modules: []formsvc.Module{
		{Name: "bring", Label: "What do you bring?", Type: "choice", Options: []string{"s", "d"}, Labels: map[string]string{"s": "Salad", "d": "Drinks"}, Other: true, Required: true, MaxLength: 20},
		{Name: "code", Pattern: "[A-Z]{2}[0-9]", PatternHelp: "Two letters & a digit"},
		{Name: "p2", Label: "Drinks", Help: "Which ones?", Type: "section", Page: true, ShowIf: &formsvc.Condition{Module: "bring", Equals: []string{"d"}}},
		{Name: "which", Type: "choice", Options: []string{"Tea", "Water"}, Other: true, Multiple: true, ShowIf: &formsvc.Condition{Module: "bring", Equals: []string{"d"}}},
		{Name: "p3", Type: "section", Page: true},
		{Name: "town", Type: "choice", Options: []string{"A", "B", "C", "D", "E", "F", "G"}, Other: true, Default: []string{"Home"}},
	}}
}

// Without scripts, a form with pages is one page with headings.
func TestPageWithSections(t *testing.T) {
	in := party()
	w := newWorld(t, in, nil)
	a := w.get("").is(200).has(
		`data-next="Next" data-back="Back" data-progress="Page %d of %d"`, `<div class="q" data-needed="bring">`,
		`<input type="radio" name="bring" value="" data-own> <span dir="auto">Other</span></label>`,
		`<input class="own" id="q4-own" name="bring" value="" dir="auto" aria-label="Your own answer" maxlength="20">`,
		`<p class="note" id="q5-pattern" dir="auto">Two letters &amp; a digit</p>`,
		`<div class="q section" data-name="p2" data-page data-if="bring" data-equals="[&#34;d&#34;]">`, `<h2 tabindex="-1" dir="auto">Drinks</h2>`, `dir="auto">Which ones?</p>`,
		`<input type="checkbox" name="which" value="" data-own>`, `<div class="q section" data-name="p3" data-page>`,
		`<option dir="auto" value="" data-own selected>Other</option>`, `<label for="q9-own">Your own answer</label>`, `name="town" value="Home"`, `<button>Send</button>`,
	)
	if strings.Contains(a.body, "<h2 tabindex=\"-1\" dir=\"auto\">p3") || strings.Count(a.body, "<form") != 1 || strings.Contains(a.body, ` required`) {
		t.Error("a section has its name as a heading, or there are forms within the form, or the browser demands a choice")
	}
	if strings.Count(a.body, `autocomplete="off"`) != 1 { // that of the field for bots
		t.Error("browsers drop an own answer when the visitor comes back to the page")
	}
	in.Modules = slices.DeleteFunc(in.Modules, func(m formsvc.Module) bool { return m.Type == "section" })
	if a := newWorld(t, in, nil).get("").is(200); strings.Contains(a.body, "data-next") || strings.Contains(a.body, "data-needed") {
		t.Error("a form of one page has what pages need")
	}
}

// An answer of the visitor's own is stored as typed, by itself or beside choices, and shown again after an error.
func TestOtherOnPage(t *testing.T) {
	w := newWorld(t, party(), nil)
	for _, c := range []struct {
		fields []string
		want   string // the stored answers
	}{
		{[]string{"bring", "", "bring", " Cake "}, `{"bring":{"value":["Cake"]}}`}, // Other is chosen
		{[]string{"bring", "Cake"}, `{"bring":{"value":["Cake"]}}`},                // only typed
		{[]string{"bring", "", "bring", "Salad"}, `{"bring":{"value":["s"]}}`},
		{[]string{"bring", "Drinks", "which", "Tea", "which", "", "which", "Milk"}, `{"bring":{"value":["d"]},"which":{"value":["Tea","Milk"]}}`},
		{[]string{"bring", "d", "which", "", "which", "Tea", "which", "Tea ", "town", "", "town", ""}, `{"bring":{"value":["d"]},"which":{"value":["Tea"]}}`},
		{[]string{"bring", "s", "code", "AB1 ", "town", "", "town", "Rome"}, `{"bring":{"value":["s"]},"code":{"value":["AB1"]},"town":{"value":["Rome"]}}`},
	} {
		w.wait(time.Minute)
		w.post(c.fields...).is(303)
		all := w.responses()
		equal(t, all[len(all)-1].Answers.JSON(), c.want, "stored %s")
	}
	for _, c := range []struct {
		fields, has []string
	}{
		{[]string{"bring", "", "bring", " "}, []string{"What do you bring?\u2069 – Choose an option"}},
		{[]string{"bring", "s", "bring", "Cake"}, []string{"Give one answer only", `value="s" id="q4" checked`, `name="bring" value="Cake"`}},
		{[]string{"bring", "d", "code", "ab1", "which", "Water", "which", "", "which", "Milk", "town", "", "town", "Rome"}, []string{
			"code\u2069 – \u2068Two letters &amp; a digit", `value="ab1"`, `value="d" checked`, `value="Water" checked`, `name="which" value="" data-own checked`, `name="which" value="Milk"`,
			`data-own selected>`, `name="town" value="Rome"`,
		}},
		{[]string{"bring", "s", "p2", "typed <x>"}, []string{"p2\u2069 – The form has no field of this name", "typed &lt;x&gt;</textarea>"}},
	} {
		w.wait(time.Minute)
		w.post(c.fields...).is(422).has(c.has...)
	}
	w.json(`{"responses":{"bring":{"value":["Cake"]},"p3":{"value":["x"]},"code":{"value":["x"]}}}`).is(422).has(`"/responses/p3"`, `"pattern_mismatch"`)
	in := party()
	in.Modules[1].PatternHelp, in.Form.Language = "", "de"
	newWorld(t, in, nil).post("bring", "s", "code", "x").is(422).has("Schreiben Sie das in der erwarteten Form")
}
