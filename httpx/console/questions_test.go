package console_test

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

type module = formsvc.Module

// editable creates a campaign to edit, and returns a function that reads its modules.
func (w *world) editable(modules ...module) (path string, c formsvc.Campaign, stored func() []module) {
	w.t.Helper()
	c, err := w.svc.Campaigns.Create(w.t.Context(), w.account.ID, formsvc.CampaignInput{Title: "Edited", EmailOptional: true, Modules: modules})
	w.must(err)
	return "/campaigns/" + string(c.ID) + "/edit", c, func() []module {
		got, err := w.svc.Campaigns.Get(w.t.Context(), c.Key())
		w.must(err)
		return got.Modules
	}
}

func pets() []module {
	return []module{
		{Name: "name", Label: "Your name", Type: "text"},
		{Name: "pet", Label: "Which pet?", Type: "choice", Options: []string{"Cat", "Dog", "Bird"}},
		{Name: "breed", Label: "Which breed?", Type: "text", Required: true, ShowIf: &formsvc.Condition{Module: "pet", Equals: []string{"Dog"}}},
		{Name: "sure", Label: "Sure?", Type: "boolean", ShowIf: &formsvc.Condition{Module: "pet", Equals: []string{"Cat", "Dog"}}},
	}
}

// A condition is never dropped: it is refused until it fits again, whatever broke it.
func TestConditionsAreKept(t *testing.T) {
	w := newSignedIn(t)
	for _, c := range []struct {
		do     string
		fields url.Values
		says   string
	}{
		{"down.1", nil, "must come before it"},
		{"up.2", nil, "must come before it"},
		{"remove.1", nil, "is gone"},
		{"stay", url.Values{"type.1": {"file"}}, "is gone"},
		{"stay", url.Values{"options.1": {"Cat\nBird"}}, "no choice “Dog” any more"},
		{"stay", url.Values{"options.1": {"Cat\nHound\nTerrier\nBird"}}, "no choice “Dog” any more"},
		{"stay", url.Values{"showValues.2": {"dog"}}, "no choice “dog” any more"},
	} {
		path, _, stored := w.editable(pets()...)
		fields := url.Values{"do": {c.do}}
		maps.Copy(fields, c.fields)
		page := w.submit(w.get(path), path, fields).is(200).says(c.says)
		again := w.submit(page, path, url.Values{"do": {"save"}})
		if again.status == 409 { // the choices of a question that is none any more
			again = w.submit(again.says("loses the choices"), path, url.Values{"do": {"save"}})
		}
		again.is(422).says(c.says)
		if got := stored(); !reflect.DeepEqual(got, pets()) {
			t.Errorf("%s: saved %+v", c.do, got)
		}
	}
	path, _, stored := w.editable(pets()...)
	page := w.submit(w.get(path), path, url.Values{"do": {"down.1"}}).is(200)
	page = w.submit(page, path, url.Values{"do": {"up.2"}}).is(200).lacks("must come before it")
	w.submit(page, path, url.Values{"do": {"save"}}).is(303)
	if got := stored(); !reflect.DeepEqual(got, pets()) {
		t.Errorf("moved and moved back: %+v", got)
	}
	w.submit(w.get(path), path, url.Values{"do": {"save"}, "showModule.2": {""}}).is(303)
	if stored()[2].ShowIf != nil {
		t.Error("“always ask” is not saved")
	}
}

// Conditions follow what is renamed.
func TestConditionsFollowRenames(t *testing.T) {
	w := newSignedIn(t)
	for _, c := range []struct {
		options string
		breed   string
		sure    []string
	}{
		{"Cat\nDogs\nBird", "Dogs", []string{"Cat", "Dogs"}},
		{"Cats\nDogs\nBirds", "Dogs", []string{"Cats", "Dogs"}},
		{"Cat\ndog\nBird", "dog", []string{"Cat", "dog"}},
		{"Dog\nCat\nBird", "Dog", []string{"Cat", "Dog"}}, // another order
		{"Bird\nDog\nCats", "Dog", nil},                   // another order and a rename: “Cat” can't be told
		{"Cat\nDog\nBird\nFish", "Dog", []string{"Cat", "Dog"}},
		{"Cat\nDog", "Dog", []string{"Cat", "Dog"}},
	} {
		path, _, stored := w.editable(pets()...)
		a := w.submit(w.get(path), path, url.Values{"do": {"save"}, "options.1": {c.options}})
		if c.sure == nil {
			a.is(422).says("no choice “Cat” any more")
			continue
		}
		a.is(303)
		if got := stored(); got[2].ShowIf.Equals[0] != c.breed || !reflect.DeepEqual(got[3].ShowIf.Equals, c.sure) {
			t.Errorf("%q: %v and %v", c.options, got[2].ShowIf, got[3].ShowIf)
		}
	}
	path, _, stored := w.editable(pets()...)
	page := w.submit(w.get(path), path, url.Values{"do": {"up.3"}, "name.1": {"animal"}, "options.1": {"Cat\nHound\nBird"}}).is(200)
	w.submit(page, path, url.Values{"do": {"save"}}).is(303)
	if got := stored(); got[2].ShowIf.Module != "animal" || got[3].ShowIf.Equals[0] != "Hound" || got[3].Name != "breed" {
		t.Errorf("renamed over two pages: %+v", got)
	}
	path, _, stored = w.editable(module{Name: "sure", Type: "boolean"}, module{Name: "why", ShowIf: &formsvc.Condition{Module: "sure", Equals: []string{"true"}}})
	w.submit(w.get(path), path, url.Values{"do": {"save"}, "showValues.1": {"No\nyes"}}).is(303)
	if got := stored()[1].ShowIf.Equals; !reflect.DeepEqual(got, []string{"false", "true"}) {
		t.Errorf("yes and no: %q", got)
	}
}

// A condition is chosen by ticking what the earlier question can have.
func TestConditionsAreTicked(t *testing.T) {
	w := newSignedIn(t)
	path, _, stored := w.editable(append(pets(), module{Name: "why", Label: "Why?", Type: "longtext"})...)
	page := w.get(path).is(200)
	if form := page.form(path); form.Get("ticked.2") != "pet" || !reflect.DeepEqual(form["tick.3"], []string{"Cat", "Dog"}) || form.Has("showValues.3") {
		t.Fatalf("form %v", form)
	}
	page = w.submit(page, path, url.Values{"do": {"stay"}, "showModule.4": {"sure"}, "showValues.4": nil}).is(200).says("is one of these Yes No")
	page = w.submit(page, path, url.Values{"do": {"stay"}, "tick.4": {"false"}, "tick.2": {"Dog", "Bird"}}).is(200)
	w.submit(page, path, url.Values{"do": {"save"}}).is(303)
	got := stored()
	if !reflect.DeepEqual(got[4].ShowIf, &formsvc.Condition{Module: "sure", Equals: []string{"false"}}) || !reflect.DeepEqual(got[2].ShowIf.Equals, []string{"Dog", "Bird"}) {
		t.Errorf("saved %v, %v", got[4].ShowIf, got[2].ShowIf)
	}
	page = w.submit(w.get(path), path, url.Values{"do": {"stay"}, "options.1": {"Cat\nBird"}}).is(200).says("Dog (no longer a choice)")
	w.submit(page, path, url.Values{"do": {"save"}, "tick.2": {"Bird"}, "tick.3": {"Cat"}}).is(303)
	w.submit(w.get(path), path, url.Values{"do": {"save"}, "showModule.4": {"pet"}}).is(422) // ticks of another question
}

// What the page has no field for stays, for every type; what a new type can't have is lost only after the visitor was told.
func TestEditingKeepsTheRest(t *testing.T) {
	w := newSignedIn(t)
	full := map[formsvc.ModuleType]module{
		"text": {MaxLength: 9, Placeholder: "x"}, "longtext": {MaxLength: 9, Placeholder: "x"}, "email": {MaxLength: 99}, "url": {Placeholder: "x"},
		"number": {Min: "-1.5", Max: "1e3", Integer: true, Placeholder: "7"}, "date": {Min: "2026-01-01", Max: "2026-12-31"}, "boolean": {},
		"choice": {Options: []string{"a", "b"}}, "file": {Accept: []string{"image/*", ".pdf"}},
		"phone": {MaxLength: 30, Placeholder: "x"}, "time": {Min: "09:00"}, "consent": {},
		"rating": {Min: "1", Max: "3", MinLabel: " Bad ", MaxLabel: "Good"}, "scale": {Min: "-5", Max: "10", Default: []string{"0"}},
	}
	var all []module
	for kind, m := range full {
		m.Name, m.Label, m.Help, m.Type, m.Multiple, m.Required = "q_"+string(kind), "Q "+string(kind), "Help", kind, !slices.Contains([]formsvc.ModuleType{"rating", "scale", "consent"}, kind), true
		all = append(all, m)
	}
	path, c, stored := w.editable(all...)
	w.submit(w.get(path), path, url.Values{"do": {"save"}, "title": {"Another"}}).is(303)
	if got := stored(); !reflect.DeepEqual(got, c.Modules) {
		t.Errorf("got  %+v\nwant %+v", got, c.Modules)
	}
	page := w.submit(w.get(path), path, url.Values{"do": {"down.0"}}).is(200)
	page = w.submit(page, path, url.Values{"do": {"add"}, "newType": {"number"}}).is(200)
	w.submit(page, path, url.Values{"do": {"remove.14"}}).is(200)
	w.submit(w.submit(page, path, url.Values{"do": {"remove.14"}}), path, url.Values{"do": {"save"}}).is(303)
	want := append([]module{c.Modules[1], c.Modules[0]}, c.Modules[2:]...)
	if got := stored(); !reflect.DeepEqual(got, want) {
		t.Errorf("moved: got  %+v\nwant %+v", got, want)
	}
	for from, lost := range map[formsvc.ModuleType]string{
		"text": "the limit of characters, the example", "number": "the example, the limits of its values", "date": "the limits of its values", "choice": "the choices a, b", "file": "the types of files",
		"phone": "the limit of characters, the example", "time": "the limits of its values", "rating": "the limits of its values, the words beside its numbers",
	} {
		m := full[from]
		m.Name, m.Label, m.Type = "q", "Q", from
		path, _, stored := w.editable(m)
		page := w.submit(w.get(path), path, url.Values{"do": {"save"}, "type.0": {"boolean"}}).is(409).says("“Q” loses " + lost)
		if got := stored(); got[0].Type != from {
			t.Errorf("%s: saved without a word: %+v", from, got)
		}
		w.submit(page, path, url.Values{"do": {"save"}}).is(303)
		if got := stored(); !reflect.DeepEqual(got, []module{{Name: "q", Label: "Q", Type: "boolean"}}) {
			t.Errorf("%s: %+v", from, got)
		}
	}
	path, _, stored = w.editable(module{Name: "q", Label: "Q", Type: "choice", Options: []string{"a", "b"}})
	page = w.submit(w.get(path), path, url.Values{"do": {"stay"}, "type.0": {"text"}}).is(200).says("loses the choices a, b")
	w.submit(page, path, url.Values{"do": {"save"}, "type.0": {"choice"}}).is(303)
	if got := stored(); len(got[0].Options) != 2 {
		t.Errorf("changed the type and back: %+v", got)
	}
}

// The save says which answers it hides, and a new question never gets the name of an old one.
func TestRemovedQuestionsWithAnswers(t *testing.T) {
	w := newSignedIn(t)
	path, c, stored := w.editable(module{Name: "old", Label: "Old"}, module{Name: "other", Label: "Other"})
	w.response(&c, "ada", formsvc.Answer{Name: "old", Value: []string{"x"}})
	w.response(&c, "eve", formsvc.Answer{Name: "old", Value: []string{}}, formsvc.Answer{Name: "other", Value: []string{"y"}})
	page := w.submit(w.get(path), path, url.Values{"do": {"remove.0"}}).is(200)
	page = w.submit(page, path, url.Values{"do": {"save"}}).is(409).says("Answers to “Old” (1 of the last 2 responses have one)")
	equal(t, len(stored()), 2, "saved without a word: %d")
	w.submit(page, path, url.Values{"do": {"save"}}).is(303)
	page = w.submit(w.get(path), path, url.Values{"do": {"add"}}).is(200)
	w.submit(page, path, url.Values{"do": {"save"}, "label.1": {"Old"}}).is(303)
	if got := stored(); got[1].Name != "old_2" {
		t.Errorf("the new question gets old answers: %+v", got)
	}
	w.submit(w.get(path), path, url.Values{"do": {"save"}, "name.0": {"renamed"}}).is(409).says("Answers to “Other”")
}

// Texts that a page would change stay as they are stored.
func TestEditingKeepsSpaces(t *testing.T) {
	w := newSignedIn(t)
	path, c, stored := w.editable(
		module{Name: " n ", Label: " two\nlines ", Help: "a\r\nb ", Type: "choice", Options: []string{"dog ", " Dog", "cat"}, Default: []string{" Dog"}},
		module{Name: "b", Label: "B", ShowIf: &formsvc.Condition{Module: " n ", Equals: []string{"dog ", " Dog"}}, Default: []string{"a\nb"}},
		module{Name: "c", Label: "C", Type: "longtext", Default: []string{"a\nb "}}, module{Name: "d", Label: "D", Multiple: true, Default: []string{"a", "b "}},
		module{Name: "e", Label: "E", Type: "boolean", Default: []string{"false"}},
	)
	w.submit(w.get(path), path, url.Values{"do": {"save"}, "label.1": {"C"}}).is(303)
	c.Modules[1].Label = "C"
	if got := stored(); !reflect.DeepEqual(got, c.Modules) {
		t.Errorf("got  %+v\nwant %+v", got, c.Modules)
	}
	w.submit(w.get(path), path, url.Values{"do": {"save"}, "options.0": {"dog\nHound\ncat"}}).is(303)
	if got := stored(); !reflect.DeepEqual(got[0].Options, []string{"dog ", "Hound", "cat"}) || !reflect.DeepEqual(got[1].ShowIf.Equals, []string{"dog ", "Hound"}) || got[0].Default[0] != "Hound" {
		t.Errorf("renamed: %q, %q, %q", got[0].Options, got[1].ShowIf, got[0].Default)
	}
	w.submit(w.get(path), path, url.Values{"do": {"save"}, "default.0": {"horse"}}).is(422).says("must be one of")
	w.submit(w.get(path), path, url.Values{
		"do": {"save"}, "default.0": {"cat"}, "default.1": {""}, "default.2": {"c\r\nd"}, "default.3": {"ab\r\n"}, "default.4": {"true"},
	}).is(303)
	var defaults [][]string
	for _, m := range stored() {
		defaults = append(defaults, m.Default)
	}
	if want := [][]string{{"cat"}, nil, {"c\nd"}, {"ab"}, {"true"}}; !reflect.DeepEqual(defaults, want) {
		t.Errorf("defaults %q, want %q", defaults, want)
	}
	for _, odd := range []string{"", " ", "a\nb"} {
		path, _, _ = w.editable(module{Name: "n", Type: "choice", Options: []string{"a", odd}})
		w.get(path).is(409).says("can't show all choices")
	}
}

// Each campaign that the editor opens can be saved, however its texts are encoded. A long label costs little.
func TestLongTextsInTheEditor(t *testing.T) {
	w := newSignedIn(t)
	var list []module
	for i := range 15 {
		list = append(list, module{Name: fmt.Sprint("q", i), Help: strings.Repeat("助", 2000), Type: "choice", Options: []string{strings.Repeat("項", 100), "&"}})
	}
	path, c, stored := w.editable(list...)
	w.submit(w.get(path).is(200), path, url.Values{"do": {"save"}, "title": {"題"}}).is(303)
	if got := stored(); !reflect.DeepEqual(got, c.Modules) {
		t.Error("changed")
	}
	w.submit(w.get(path), path, url.Values{"do": {"save"}, "description": {strings.Repeat("題", 90_000)}}).is(400).says("more than 786 kB")
	path, _, _ = w.editable(module{Name: "q"})
	page := w.submit(w.get(path), path, url.Values{"do": {"add"}}).is(200)
	w.submit(page, path, url.Values{"do": {"save"}, "label.1": {strings.Repeat("a ", 120_000)}}).is(422).says("must have at most 1000 characters")
}

// A host's formats are types of questions, and stay with their question.
func TestFormats(t *testing.T) {
	w := newWorld(t, nil)
	known := map[string]formsvc.Format{"iban": {Label: "Bank account"}, "size": {Type: formsvc.NumberModule}}
	svc, err := formsvc.New(w.store, &formsvc.Options{Now: w.clock, Formats: known})
	w.must(err)
	w.svc = svc
	w.serve(nil)
	w.signIn()
	c, err := svc.Campaigns.Create(t.Context(), w.account.ID, formsvc.CampaignInput{Title: "t", Modules: []formsvc.Module{
		{Name: "a", Format: "iban"}, {Name: "b", Type: formsvc.NumberModule, Format: "size", Default: []string{"5"}},
	}})
	w.must(err)
	path := "/campaigns/" + string(c.ID)
	modules := func() string {
		c, err := w.svc.Campaigns.Get(t.Context(), c.Key())
		w.must(err)
		text := ""
		for _, m := range c.Modules {
			text += string(m.Type) + ":" + m.Format + fmt.Sprint(m.Default) + " "
		}
		return text
	}
	page := w.get(path+"/edit").is(200).says("New question Bank account", "New question size")
	w.submit(page, path+"/edit", nil).is(303)
	if got := modules(); got != "text:iban[] number:size[5] " {
		t.Error(got)
	}
	page = w.submit(w.get(path+"/edit"), path+"/edit", url.Values{"type.0": {"number:size"}, "type.1": {"text:iban"}, "newType": {"text:iban"}, "do": {"add"}}).is(200)
	w.submit(page, path+"/edit", url.Values{"label.2": {"More"}}).is(303)
	if got := modules(); got != "number:size[] text:iban[5] text:iban[] " {
		t.Error(got)
	}
	delete(known, "iban") // an owner is told, and nothing is lost
	w.submit(w.get(path+"/edit"), path+"/edit", nil).is(422).says("must be the name of a format of this service")
}

// A question is inserted where its owner wants it, duplicated, and comes back after a removal, with its answers.
func TestInsertDuplicateAndUndo(t *testing.T) {
	w := newSignedIn(t)
	c := w.campaign("Form")
	c.Modules = []formsvc.Module{
		{Name: "pet", Label: "Pet?", Type: formsvc.ChoiceModule, Options: []string{"Dog", "Cat"}, Required: true},
		{Name: "name", Label: "Its name?", Type: formsvc.TextModule, ShowIf: &formsvc.Condition{Module: "pet", Equals: []string{"Dog"}}},
	}
	_, err := w.svc.Campaigns.Replace(t.Context(), c.Key(), c.CampaignInput)
	w.must(err)
	path := "/campaigns/" + string(c.ID) + "/edit"
	page := w.get(path).is(200).says("Insert a question below")
	page = w.submit(page, path, url.Values{"do": {"insert.0.date"}}).is(200)
	form := page.form(path)
	if form.Get("label.0") != "Pet?" || form.Get("label.1") != "" || form.Get("type.1") != "date" || form.Get("label.2") != "Its name?" {
		t.Fatalf("after inserting: %v", form)
	}
	page = w.submit(page, path, url.Values{"label.1": {"Born?"}, "do": {"copy.0"}}).is(200)
	if form = page.form(path); form.Get("label.1") != "Pet?" || form.Get("name.1") != "pet_2" || form.Get("options.1") != "Dog\nCat\n" || form.Get("stored.1") != "" {
		t.Fatalf("after duplicating: %v", form)
	}
	page = w.submit(page, path, url.Values{"do": {"remove.0"}}).is(200).says("The question is removed; saving makes that final.", "is gone")
	page = w.submit(page, path, url.Values{"do": {"undo"}}).is(200).lacks("is removed", "is gone")
	w.submit(page, path, url.Values{"do": {"save"}}).is(303)
	saved, err := w.svc.Campaigns.Get(t.Context(), c.Key())
	w.must(err)
	var names []string
	for _, m := range saved.Modules {
		names = append(names, m.Name)
	}
	if got := strings.Join(names, " "); got != "pet pet_2 born name" || !saved.Modules[0].Required || saved.Modules[3].ShowIf.Module != "pet" {
		t.Errorf("saved %s: %+v", got, saved.Modules)
	}
	for _, bad := range []string{"insert.9.text", "copy.-1", "undo", "insert.x"} {
		w.submit(w.get(path), path, url.Values{"do": {bad}, "removed": {"{"}}).is(200).lacks("is removed")
	}
}

// Questions move to the places that are typed, as dragging types them. The others keep their order, and the card in work stays open.
func TestPositions(t *testing.T) {
	w := newSignedIn(t)
	five := []module{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}, {Name: "c", Label: "C"}, {Name: "d", Label: "D"}, {Name: "e", Label: "E"}}
	for want, at := range map[string][5]string{
		"abcde": {"1", "2", "3", "4", "5"}, "bcade": {"3", "2", "3", "4", "5"}, "eabcd": {"1", "2", "3", "4", "1"}, "edcba": {"5", "4", "3", "2", "1"},
		"bcdea": {"99", "2", "3", "4", "5"}, "cdbae": {"4", "3", "1", "2", "5"}, "deabc": {"1", "2", "3", "1", "1"}, "bacde": {"", "1", "", "", ""}, "adebc": {"1", "5", "5", "4", "5"},
	} {
		path, _, stored := w.editable(five...)
		fields := url.Values{"do": {"stay"}, "open": {"2"}}
		for i, text := range at {
			fields.Set("position."+fmt.Sprint(i), text)
		}
		page := w.submit(w.get(path), path, fields).is(200)
		if !regexp.MustCompile(` open>\s*<summary><svg[^>]*><use [^>]*></svg><span dir="auto">B<`).MatchString(page.body) {
			t.Errorf("%s: the card of B isn't open", want)
		}
		w.submit(page, path, url.Values{"do": {"save"}}).is(303)
		got := ""
		for _, m := range stored() {
			got += m.Name
		}
		if got != want {
			t.Errorf("%v: %s, want %s", at, got, want)
		}
	}
	path, _, _ := w.editable(five...)
	w.submit(w.get(path), path, url.Values{"position.1": {"first"}}).is(422).says("“first” is no place in the list.")
	page := w.submit(w.get(path), path, url.Values{"position.4": {"1"}, "do": {"up.1"}}).is(200)
	if form := page.form(path); form.Get("name.0")+form.Get("name.1")+form.Get("name.2") != "eba" {
		t.Errorf("moved and up: %v", form)
	}
}

// A choice with answers keeps its value when it is renamed; one without answers or one that has a label is as it is read.
func TestRenamedChoicesKeepValues(t *testing.T) {
	w := newSignedIn(t)
	path, c, stored := w.editable(pets()...)
	_, err := w.svc.Responses.Create(t.Context(), c.Key(), formsvc.ResponseInput{Answers: []formsvc.Answer{{Name: "pet", Value: []string{"Bird"}}}})
	w.must(err)
	save := func(options, want, labels string) {
		t.Helper()
		page := w.submit(w.get(path), path, url.Values{"options.1": {options}, "default.1": {"Cat"}, "do": {"stay"}}).is(200)
		w.submit(page, path, url.Values{"do": {"save"}}).is(303)
		m := stored()
		if got := fmt.Sprint(m[1].Options, m[1].Labels, m[1].Default, m[2].ShowIf.Equals); got != want+" "+labels+" [Cat] [Dog]" {
			t.Errorf("%q: %s", options, got)
		}
	}
	save("Cat\nHound\nBird", "[Cat Dog Bird]", "map[Dog:Hound]")
	save("Cat\nHounds\nBird", "[Cat Dog Bird]", "map[Dog:Hounds]")
	save("Cat\nHounds\nFish\nBird", "[Cat Dog Fish Bird]", "map[Dog:Hounds]")
	save("Cat\nDog\nDogs\nFish\nBird", "[Cat Dog Dogs Fish Bird]", "map[]") // as before again
	save("Cat\nDog\nDogs\nFisch\nVogel", "[Cat Dog Dogs Fish Bird]", "map[Bird:Vogel Fish:Fisch]")
	w.get("/campaigns/" + string(c.ID) + "?c=pet").says("Vogel").lacks(">Bird<")
	page := w.submit(w.get(path), path, url.Values{"options.1": {"Cat\nDog\nFisch"}, "do": {"save"}}).is(409).says(
		"“Vogel” is no choice of “Which pet?” any more: 1 of the last 1 responses chose it.")
	w.submit(page, path, url.Values{"do": {"save"}}).is(303)
	save("Cat\nDog\nDogs", "[Cat Dog Fish]", "map[Fish:Dogs]")
}

// Both versions of a campaign stand side by side when somebody else has saved meanwhile.
func TestConflict(t *testing.T) {
	w := newSignedIn(t)
	path, c, _ := w.editable(pets()...)
	mine := w.get(path)
	theirs := w.submit(w.get(path), path, url.Values{"title": {"Their title"}, "label.0": {"Whose name?"}, "do": {"remove.3"}}).is(200)
	w.submit(theirs, path, url.Values{"help.2": {"As on its papers"}}).is(303)
	page := w.submit(mine, path, url.Values{"title": {"My title"}, "options.1": {"Cat\nDog"}, "do": {"save"}}).is(409)
	page.says("Their title My title", "Whose name? (Short text) Your name (Short text)", "not there Sure?", "As on its papers)", "Discard yours").lacks("Order", "E-mail address required optional")
	w.submit(page, path, nil).is(303)
	got, err := w.svc.Campaigns.Get(t.Context(), c.Key())
	w.must(err)
	if got.Title != "My title" || len(got.Modules) != 4 {
		t.Errorf("saved %+v", got)
	}
}
