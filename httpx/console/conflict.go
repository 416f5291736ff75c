package console

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// A difference is a part of a campaign that was saved by somebody else in another way than it was typed here. "" is for a part that
// isn't there.
type difference struct{ What, Saved, Typed string }

// differences compares the stored campaign with a form, part by part, and question by question.
func (v *visit) differences(f *campaignForm) (list []difference) {
	add := func(what, saved, typed string, same bool) {
		switch {
		case same:
			return
		case saved == typed:
			saved, typed = saved+" (other settings)", typed+" (other settings)"
		}
		list = append(list, difference{what, saved, typed})
	}
	described := func(list []formsvc.Module, i int) string {
		m := &list[i]
		text := v.h.typeName(*m) + map[bool]string{true: ", required"}[m.Required] + map[bool]string{true: ", several"}[m.Multiple]
		if asks := asks(list, i); asks != "" {
			text += ", " + asks
		}
		for _, part := range []string{strings.Join(shownAll(m, m.Options), ", "), m.Help} {
			if part != "" {
				text += ". " + part
			}
		}
		return short(600, cmp.Or(m.Label, m.Name)+" ("+text+")")
	}
	c, words := &v.campaign, map[bool]string{true: "optional", false: "required"}
	add("Title", c.Title, f.Title, c.Title == f.Title)
	add("Description", c.Description, f.Description, c.Description == f.Description)
	add("E-mail address", words[c.EmailOptional], words[f.EmailOptional], c.EmailOptional == f.EmailOptional)
	names := func(in *formsvc.CampaignInput) string {
		return map[bool]string{true: "not asked", false: words[!in.RequireName]}[in.Form.HideName]
	}
	add("Name", names(&c.CampaignInput), names(&f.CampaignInput), names(&c.CampaignInput) == names(&f.CampaignInput))
	add("Opens", v.typed(c.OpensAt), f.Opens, v.typed(c.OpensAt) == f.Opens)
	add("Closes", v.typed(c.ClosesAt), f.Closes, v.typed(c.ClosesAt) == f.Closes)
	named := func(list []formsvc.Module, name string) int {
		return slices.IndexFunc(list, func(m formsvc.Module) bool { return m.Name == name })
	}
	order := func(list, other []formsvc.Module) (names, labels []string) {
		for _, m := range list {
			if named(other, m.Name) >= 0 {
				names, labels = append(names, m.Name), append(labels, short(60, cmp.Or(m.Label, m.Name)))
			}
		}
		return names, labels
	}
	for i := range c.Modules {
		m, at := &c.Modules[i], named(f.Modules, c.Modules[i].Name)
		if at < 0 {
			add(cmp.Or(m.Label, m.Name), described(c.Modules, i), "", false)
		} else {
			add(cmp.Or(m.Label, m.Name), described(c.Modules, i), described(f.Modules, at), jsonOf(m) == jsonOf(&f.Modules[at]))
		}
	}
	for i := range f.Modules {
		if named(c.Modules, f.Modules[i].Name) < 0 {
			add(cmp.Or(f.Modules[i].Label, "New question"), "", described(f.Modules, i), false)
		}
	}
	was, saved := order(c.Modules, f.Modules)
	is, typed := order(f.Modules, c.Modules)
	add("Order", strings.Join(saved, ", "), strings.Join(typed, ", "), slices.Equal(was, is))
	return list
}

func jsonOf(m *formsvc.Module) string {
	text, _ := json.Marshal(m) // has no value that JSON lacks
	return string(text)
}
