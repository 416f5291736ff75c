package console_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// The owner's words and what the address fills in are settings of the form, which follow the questions.
func TestOwnWordsAndPrefill(t *testing.T) {
	w := newForms(t)
	odd := "two\nlines & more"
	c, path := w.published(formsvc.CampaignInput{Title: "x", Modules: []formsvc.Module{{Name: "a", Label: "A?"}, {Name: odd}, {Name: "ok", Type: "consent"}, {Name: "gone"}}})
	form := func() formsvc.Form {
		t.Helper()
		got, err := w.svc.Campaigns.Get(t.Context(), c.Key())
		w.must(err)
		return got.Form
	}
	share := w.get(path+"/share").is(200).has("<code>two%0Alines&#43;%26&#43;more=</code>", "<code>email=</code>")
	share.lacks("<code>ok=</code>")
	w.submit(share, path+"/share", url.Values{"button": {strings.Repeat("x", 61)}, "closed": {"Over\r\nnow"}, "prefill": {"a"}}).is(422).says("at most 60").has(`value="a" checked`, ">Over\nnow</textarea>")
	w.submit(share, path+"/share", url.Values{
		"enabled": {"true"}, "button": {"Join <us>"}, "thanksTitle": {"Bye"}, "closed": {"Over\r\nnow"}, "full": {"Full"}, "prefill": {"email", "a", "two\r\nlines & more", "gone", "unknown"},
	}).is(303)
	if got := form(); got.Texts != (formsvc.FormTexts{Button: "Join <us>", ThanksTitle: "Bye", Closed: "Over\nnow", Full: "Full"}) || !slices.Equal(got.Prefill, []string{"email", "a", odd, "gone"}) {
		t.Errorf("%+v", got)
	}
	if text := w.get(path + "/share").is(200).snippet("HTML form"); !strings.Contains(text, "<button>Join &lt;us&gt;</button>") {
		t.Error(text)
	}
	w.submit(w.get(path+"/share"), path+"/share", nil).is(303)
	if got := form(); got.Texts.Closed != "Over\nnow" || len(got.Prefill) != 4 {
		t.Errorf("saved again: %+v", got)
	}

	edit := w.get(path + "/edit").is(200)
	edit = w.submit(edit, path+"/edit", url.Values{"do": {"remove.3"}}).is(200)
	w.submit(edit, path+"/edit", url.Values{"do": {"save"}, "name.0": {"b"}, "hidden.1": {"true"}, "required.1": {"true"}}).is(422).says("doesn't apply to a hidden question")
	w.submit(edit, path+"/edit", url.Values{"do": {"save"}, "name.0": {"b"}, "hidden.0": {"true"}, "default.0": {"web"}}).is(303)
	if got := form(); !slices.Equal(got.Prefill, []string{"email", "b", odd}) {
		t.Errorf("after renaming one and removing another: %q", got.Prefill)
	}
	w.get(path + "/edit").says("never shown").has(`name="hidden.0" value="true" checked`)
	if text := w.get(path + "/share").is(200).snippet("HTML form"); !strings.Contains(text, `<input type="hidden" name="b" value="web">`) {
		t.Error(text)
	}
	edit = w.submit(w.get(path+"/edit"), path+"/edit", url.Values{"do": {"stay"}, "type.0": {"date"}}).is(200).says("that it is never shown")
	w.submit(edit, path+"/edit", url.Values{"do": {"add.text"}}).is(200)
	added := w.submit(w.get(path+"/edit"), path+"/edit", url.Values{"do": {"add.text"}}).is(200)
	w.submit(added, path+"/edit", url.Values{"do": {"save"}, "label.3": {"Campaign code"}, "hidden.3": {"true"}}).is(303)
	if got := form(); !slices.Contains(got.Prefill, "campaign_code") {
		t.Errorf("a new hidden question can't be filled in: %q", got.Prefill)
	}
}
