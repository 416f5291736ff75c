package intake

import (
	"slices"
	"strings"
	"unicode"

	"github.com/formsvc/toolkit/formsvc"
)

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
