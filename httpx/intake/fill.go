package intake

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/formsvc/toolkit/formsvc"
)

// labelOf returns what people call a module. A section without a label has no heading.
func labelOf(m *formsvc.Module) string {
	if m.Type == formsvc.SectionModule {
		return m.Label
	}
	return cmp.Or(m.Label, m.Name)
}

// fillOwn sets the answer of the visitor's own, as far as there are bytes left on the page, and returns the options that were chosen.
func (f *field) fillOwn(typed []string, left *int) (chosen []string) {
	for _, value := range f.module.Canonical(typed) {
		switch {
		case slices.Contains(f.module.Options, value):
			chosen = append(chosen, value)
		case strings.TrimSpace(value) == "":
		case f.Own == "" && escapedSize(value) <= *left:
			f.Own = value
			*left -= escapedSize(value)
		case f.Own != value:
			f.fail(f.T["notKept"])
		}
	}
	return chosen
}

// fill sets what was typed, as far as there are bytes left on the page.
func (f *field) fill(typed []string, left *int) {
	if f.Other && f.Kind != "hidden" {
		typed = f.fillOwn(typed, left)
	}
	for i := range f.Options {
		o := &f.Options[i]
		o.Chosen = slices.Contains(typed, o.Value) && !o.Own || o.Own && f.Own != ""
	}
	if f.Kind == "radio" && len(typed) == 0 && !f.Required && f.Own == "" {
		f.Options[len(f.Options)-1].Chosen = true
	}
	of := formsvc.Module{Type: formsvc.ModuleType(f.Kind)}
	dropped := func(value string) bool { code, _ := of.Check(value); return code != "" && value != "" }
	if (f.Kind == "date" || f.Kind == "time") && slices.ContainsFunc(typed, dropped) {
		f.Kind = "text" // an input of that type would drop it
	}
	least := 1
	switch {
	case f.Options != nil:
		return
	case f.Kind == "file" || f.Kind == "section":
		typed = nil
	case f.Multiple:
		least = inputs
	}
	for _, value := range typed {
		if size := inputSize + 5*len(f.Label[:min(len(f.Label), 160)]) + escapedSize(value); size <= *left && len(f.Values) < inputsMost {
			f.Values = append(f.Values, value)
			*left -= size
		} else {
			f.fail(f.T["notKept"])
		}
	}
	f.Values = append(f.Values, make([]string, max(least-len(f.Values), 0))...)
}

// escapedSize returns at least how many bytes a text takes in a page.
func escapedSize(s string) (n int) {
	for i := range len(s) {
		if n++; strings.IndexByte("\x00\"'&<>+`=", s[i]) >= 0 {
			n += 5
		}
	}
	return n
}

// queryMost is the longest query of an address in bytes that fills in a form. Browsers and proxies cut longer ones.
const queryMost = 16 << 10

// prefilled returns what the page's address fills in, by the names of the fields, as the API has it.
func (v *visit) prefilled() (list map[string][]string) {
	if len(v.r.URL.RawQuery) > queryMost || len(v.campaign.Form.Prefill) == 0 {
		return nil
	}
	query := v.r.URL.Query()
	list = make(map[string][]string)
	for _, name := range v.campaign.Form.Prefill {
		m := &formsvc.Module{Name: name, Type: formsvc.TextModule, MaxLength: maxName}
		if name == "email" {
			m = &formsvc.Module{Name: name, Type: formsvc.EmailModule}
		}
		if i := slices.IndexFunc(v.campaign.Modules, func(m formsvc.Module) bool { return m.Name == name }); i >= 0 {
			m = &v.campaign.Modules[i]
		}
		if values := v.fitting(m, query[name]); len(values) > 0 {
			list[name] = values
		}
	}
	return list
}

// fitting returns the values that a field takes, as the API has them: written so, as the language of the page writes them, or a choice's label.
// It returns none if they are too many.
func (v *visit) fitting(m *formsvc.Module, typed []string) (list []string) {
	if !m.Prefills() || len(typed) > inputsMost {
		return nil
	}
	for _, value := range typed {
		s, bare := sent{reads: make(map[string][2]string)}, strings.TrimSpace(value)
		ways := []string{value, bare}
		if text := s.clean(m, value, v.t); len(s.reads) == 0 { // not in two ways
			ways = append(ways, text)
		}
		for _, option := range m.Options {
			if m.Shown(option) == bare {
				ways = append(ways, option)
			}
		}
		if i := slices.IndexFunc(ways, func(way string) bool { return v.fits(m, way) }); i >= 0 {
			list = append(list, ways[i])
		}
	}
	if m.Choices() != nil {
		list = distinct(list)
	}
	if len(list) > 1 && !m.Multiple {
		return nil
	}
	return list
}

// fits reports whether a value can be an answer, and whether its field on the page can have it.
func (v *visit) fits(m *formsvc.Module, value string) bool {
	code, _ := m.Check(value)
	if code != "" || strings.TrimSpace(value) == "" || formsvc.CheckText(value) != nil {
		return false
	}
	lines := m.Type == formsvc.LongTextModule || m.Type == formsvc.ChoiceModule
	if !lines && strings.ContainsFunc(value, unicode.IsControl) {
		return false
	}
	format := v.h.svc.Campaigns.Formats()[m.Format]
	return format.Check == nil || format.Check(value) == nil
}
