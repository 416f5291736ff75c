package intake

import (
	"cmp"
	"slices"
	"strings"

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
