package console

import (
	"cmp"
	"net/url"
	"slices"

	"github.com/formsvc/toolkit/formsvc"
)

// readWords reads the owner's words on the form's page, and what its address may fill in, if they were sent.
func (v *visit) readWords(form *formsvc.Form) {
	if t := &form.Texts; v.r.PostForm.Has("button") {
		t.Button, t.ThanksTitle = asStored(v.field("button"), t.Button), asStored(v.field("thanksTitle"), t.ThanksTitle)
		t.Closed, t.Full = textAsStored(v.field("closed"), t.Closed), textAsStored(v.field("full"), t.Full)
	}
	if v.r.PostForm.Has("prefills") {
		gone := func(name string) bool {
			return !slices.ContainsFunc(fillables(&v.campaign), func(f fillable) bool { return f.Name == name })
		}
		form.Prefill = slices.DeleteFunc(inOrder(v.r.PostForm["prefill"], form.Prefill), gone)
	}
}

// A fillable is a field that the form's address may fill in.
type fillable struct {
	Name, Label string
	Query       string // the name as addresses have it
}

// fillables returns the user's fields and the questions that the address of a form may fill in.
func fillables(c *formsvc.Campaign) (list []fillable) {
	for _, user := range []fillable{{"email", "E-mail address", "email"}, {"firstName", "First name", "firstName"}, {"lastName", "Last name", "lastName"}} {
		if named(c.Modules, user.Name) == nil {
			list = append(list, user)
		}
	}
	for _, m := range c.Modules {
		if m.Prefills() {
			list = append(list, fillable{m.Name, short(80, cmp.Or(m.Label, m.Name)), url.QueryEscape(m.Name)})
		}
	}
	return list
}

// Fills reports whether the form's address may fill in a field.
func (p sharePage) Fills(name string) bool { return slices.Contains(p.Form.Prefill, name) }

// followPrefill takes over the new names of questions into what the form's address may fill in, and leaves out those that can't be filled in
// any more. A question that is hidden now can be filled in.
func (f *campaignForm) followPrefill(stored []formsvc.Module) {
	var list []string
	for _, name := range f.Form.Prefill {
		if i := slices.Index(f.stored, name); i >= 0 && i < len(f.Modules) {
			name = f.Modules[i].Name
		}
		if slices.ContainsFunc(fillables(&formsvc.Campaign{CampaignInput: f.CampaignInput}), func(x fillable) bool { return x.Name == name }) {
			list = append(list, name)
		}
	}
	for i := range f.Modules {
		m := &f.Modules[i]
		before := named(stored, f.stored[i])
		if m.Hidden && m.Name != "" && m.Prefills() && (before == nil || !before.Hidden) && !slices.Contains(list, m.Name) {
			list = append(list, m.Name)
		}
	}
	f.Form.Prefill = list
}
