package console_test

import (
	"html"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

// The editor makes sections, pages, patterns and other answers, keeps them, and says what another type loses.
func TestSectionsInEditor(t *testing.T) {
	w := newSignedIn(t)
	path, _, stored := w.editable(module{Name: "pet", Label: "Pet", Type: "choice", Options: []string{"Cat"}})
	page := w.get(path).is(200).says("People may write an answer of their own", "Section", "Page")
	page = w.submit(page, path, url.Values{"do": {"add.section:page"}, "other.0": {"true"}}).is(200).says("Without a heading Page", "Show the heading only if the answer to")
	page = w.submit(page, path, url.Values{"do": {"add.section"}, "label.1": {"About you"}, "help.1": {"Only a few words."}}).is(200)
	page = w.submit(page, path, url.Values{"do": {"add.text"}, "label.2": {"The end"}, "maxLength.0": {"9"}}).is(200)
	for name := range page.form(path) {
		if name == "required.1" || name == "default.1" || name == "maxLength.1" || name == "pattern.1" || name == "pattern.0" {
			t.Errorf("the page has a field %s", name)
		}
	}
	w.submit(page, path, url.Values{"do": {"save"}, "label.3": {"Code"}, "pattern.3": {"[A-Z"}, "patternHelp.3": {"A letter"}}).is(422).says("must be a regular expression (RE2): missing closing ]")
	w.submit(page, path, url.Values{"do": {"save"}, "label.3": {"Code"}, "pattern.3": {"[A-Z]"}, "patternHelp.3": {"A letter"}}).is(303)
	want := []module{
		{Name: "pet", Label: "Pet", Type: "choice", Options: []string{"Cat"}, Other: true, MaxLength: 9},
		{Name: "about_you", Label: "About you", Help: "Only a few words.", Type: "section", Page: true},
		{Name: "the_end", Label: "The end", Type: "section"}, {Name: "code", Label: "Code", Type: "text", Pattern: "[A-Z]", PatternHelp: "A letter"},
	}
	if got := stored(); !reflect.DeepEqual(got, want) {
		t.Errorf("stored %+v", got)
	}
	w.submit(w.get(path), path, url.Values{"do": {"save"}}).is(303)
	if got := stored(); !reflect.DeepEqual(got, want) {
		t.Errorf("saved as it was, it is %+v", got)
	}
	page = w.submit(w.get(path), path, url.Values{"do": {"add.section:page"}}).is(200).lacks("The end (")
	w.submit(page, path, url.Values{"do": {"save"}}).is(303)
	equal(t, stored()[4].Name, "section", "a page without a heading is called %s")
	page = w.submit(w.get(path), path, url.Values{"do": {"save"}, "type.0": {"text"}, "type.1": {"section"}, "type.3": {"section"}, "required.3": {"true"}}).is(409).
		says("“Pet” loses answers beside its choices, the choices Cat", "“Code” loses the pattern of its answers.")
	w.submit(page, path, url.Values{"do": {"save"}}).is(303)
	if got := stored(); got[1].Page || got[3].Pattern != "" || got[0].Other || got[0].MaxLength != 9 {
		t.Errorf("after other types: %+v", got)
	}
	w.submit(w.get(path), path, url.Values{"do": {"save"}, "showModule.4": {"the_end"}, "showValues.4": {"x"}}).is(422).says("is gone. Choose another one")
}

// Nothing but the form and its snippet shows a section. Other answers can be filtered by, and are counted together.
func TestSectionsInPages(t *testing.T) {
	w := newSignedIn(t)
	c, path := w.form(
		module{Name: "part", Label: "First part", Help: "Briefly", Type: "section"}, module{Name: "pet", Label: "Pet", Type: "choice", Options: []string{"Cat"}, Other: true, Required: true},
		module{Name: "code", Label: "Code", Pattern: "[A-Z]", PatternHelp: "A letter"},
	)
	for _, pet := range []string{"Cat", "Newt", "Ant"} {
		w.response(&c, pet, value("pet", pet))
	}
	w.get(path+"/summary").says("Cat 1 33 %", "Other answers 2 67 %").lacks("First part", "any more")
	w.get(path + "?ask=").says("Another choice").lacks("First part")
	if got := w.get(path + "?a.pet=Newt"); strings.Contains(got.text(), "Ant ") || !strings.Contains(got.text(), "Newt") {
		t.Errorf("filtered: %s", got.text())
	}
	in := c.CampaignInput
	in.Form.Enabled = true
	_, err := w.svc.Campaigns.Replace(t.Context(), c.Key(), in)
	w.must(err)
	share := html.UnescapeString(w.get(path + "/share").is(200).body)
	for _, want := range []string{"<h2>First part</h2>\n<p>Briefly</p>", `<label>Other <input name="pet"></label>`, "<small>A letter</small>", `name="pet" value="Cat">`} {
		if !strings.Contains(share, want) {
			t.Errorf("the snippet has no %s", want)
		}
	}
	r := w.response(&c, "Ada", value("pet", "Newt"))
	w.get(path + "/responses/" + string(r.ID)).says("Newt").lacks("First part")
}
