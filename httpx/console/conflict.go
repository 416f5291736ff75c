package console

import (
	"cmp"
	"encoding/json"
	"strconv"
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
	described := func(list []formsvc.Module, m *formsvc.Module) string {
		text := v.h.typeName(*m) + map[bool]string{true: ", required"}[m.Required] + map[bool]string{true: ", several"}[m.Multiple] + map[bool]string{true: ", never shown"}[m.Hidden]
		if asks := asks(list, m.ShowIf); asks != "" {
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
	zone := v.zoneFor(&c.CampaignInput)
	add("Opens", typedIn(c.OpensAt, zone), f.Opens, typedIn(c.OpensAt, zone) == f.Opens)
	add("Closes", typedIn(c.ClosesAt, zone), f.Closes, typedIn(c.ClosesAt, zone) == f.Closes)
	add("Time zone", c.TimeZone, f.TimeZone, c.TimeZone == f.TimeZone)
	add("Most responses", strconv.Itoa(c.Form.MaxResponses), strconv.Itoa(f.Form.MaxResponses), c.Form.MaxResponses == f.Form.MaxResponses)
	once := map[bool]string{true: "one for each address", false: "any number"}
	add("Responses of an address", once[c.Form.OncePerEmail], once[f.Form.OncePerEmail], c.Form.OncePerEmail == f.Form.OncePerEmail)
	for i := range c.Modules {
		m, now := &c.Modules[i], named(f.Modules, c.Modules[i].Name)
		if now == nil {
			add(cmp.Or(m.Label, m.Name), described(c.Modules, m), "", false)
		} else {
			add(cmp.Or(m.Label, m.Name), described(c.Modules, m), described(f.Modules, now), jsonOf(m) == jsonOf(now))
		}
	}
	for i := range f.Modules {
		if m := &f.Modules[i]; named(c.Modules, m.Name) == nil {
			add(cmp.Or(m.Label, "New question"), "", described(f.Modules, m), false)
		}
	}
	order := func(list, other []formsvc.Module) (labels []string) {
		for _, m := range list {
			if named(other, m.Name) != nil {
				labels = append(labels, short(60, labelIn(f.Modules, m.Name)))
			}
		}
		return labels
	}
	saved, typed := strings.Join(order(c.Modules, f.Modules), ", "), strings.Join(order(f.Modules, c.Modules), ", ")
	add("Order", saved, typed, saved == typed)
	return list
}

func jsonOf(m *formsvc.Module) string {
	text, _ := json.Marshal(m) // has no value that JSON lacks
	return string(text)
}
