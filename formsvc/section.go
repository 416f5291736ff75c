package formsvc

import (
	"cmp"
	"slices"
	"strings"
)

// Answered reports whether questions of the type have answers: a file question has files, and a section nothing.
func (t ModuleType) Answered() bool { return t != FileModule && t != SectionModule }

// Typed reports whether values are texts that people type, so that MaxLength and Pattern apply.
func (t ModuleType) Typed() bool {
	return slices.Contains([]ModuleType{TextModule, LongTextModule, EmailModule, URLModule, PhoneModule}, t)
}

// Questions returns the modules without the sections. The caller must not change them.
func (in *CampaignInput) Questions() []Module {
	section := func(m Module) bool { return m.Type == SectionModule }
	if !slices.ContainsFunc(in.Modules, section) {
		return in.Modules
	}
	return slices.DeleteFunc(slices.Clone(in.Modules), section)
}

// checkSection notes members that belong to a section, or don't.
func (e *ValidationError) checkSection(pointer string, m *Module) {
	e.misplaced(m.Required && m.Type == SectionModule, pointer+"/required", "doesn't apply to section")
	e.misplaced(m.Page && m.Type != SectionModule, pointer+"/page", "applies to section only")
	e.misplaced(m.Other && m.Type != ChoiceModule, pointer+"/other", "applies to choice only")
}

// Canonical returns the values of an answer for texts that people typed. A choice with Other has its own value without spaces around it,
// and what reads as an option is that option.
func (m *Module) Canonical(typed []string) []string {
	if !m.Other {
		return typed
	}
	values := make(map[string]string, 2*len(m.Options))
	for _, value := range m.Options {
		values[strings.TrimSpace(m.Shown(value))] = value
	}
	for _, value := range m.Options {
		values[value] = value
	}
	list := slices.Clone(typed)
	for i, text := range list {
		short := strings.TrimSpace(text)
		list[i] = cmp.Or(values[text], values[short], short)
	}
	return list
}

// closed returns the module without answers of one's own.
func (m Module) closed() *Module {
	m.Other = false
	return &m
}

// owns reports whether a value is one of the visitor's own.
func (m *Module) owns(value string) bool { return m.Other && !slices.Contains(m.Options, value) }

// canonical returns the answers with their values as [Module.Canonical] has them.
func (in *CampaignInput) canonical(answers []Answer) []Answer {
	for i := range in.Modules {
		if m := &in.Modules[i]; m.Other {
			at := slices.IndexFunc(answers, func(a Answer) bool { return a.Name == m.Name })
			if at >= 0 {
				answers = slices.Clone(answers)
				answers[at].Value = m.Canonical(answers[at].Value)
			}
		}
	}
	return answers
}
