package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/formsvc/toolkit/formsvc"
)

// readQuestion reads a question. What the page has no field for stays as it is stored; what another type doesn't have is noted as lost.
// The field was has the name that the question was shown with, and the field shown its type then.
func (v *visit) readQuestion(f *campaignForm, i int) formsvc.Module {
	field := func(name string) string { return v.field(name + "." + strconv.Itoa(i)) }
	var m formsvc.Module
	if stored := named(v.campaign.Modules, v.r.PostForm.Get("stored."+strconv.Itoa(i))); stored != nil {
		m = *stored
	}
	f.stored = append(f.stored, m.Name)
	m.Name, m.Label, m.Help, m.Required = asStored(field("name"), m.Name), asStored(field("label"), m.Label), asStored(field("help"), m.Help), field("required") != ""
	sent := func(name string) bool { return v.r.PostForm.Has(name + "." + strconv.Itoa(i)) }
	shown := func(types ...formsvc.ModuleType) bool {
		return slices.Contains(types, formsvc.ModuleType(field("shown")))
	}
	if sent("maxLength") {
		var err error
		if m.MaxLength, err = strconv.Atoi(cmp.Or(field("maxLength"), "0")); err != nil {
			m.MaxLength = -1 // is refused
		}
	}
	if sent("placeholder") {
		m.Placeholder = asStored(field("placeholder"), m.Placeholder)
	}
	was := m
	if text := v.r.PostForm.Get("had." + strconv.Itoa(i)); text != "" {
		_ = json.Unmarshal([]byte(text), &was) // what can't be read isn't from our page
	}
	if sent("options") {
		saved := m.Options
		f.renamed[i] = choose(&m, &was, lines(field("options")), func(value string) bool {
			return v.campaign.ResponseCount > 0 && slices.Contains(saved, value)
		})
	}
	if sent("had") {
		m.Places = v.readPlaces(&m, &was, i, f.renamed[i])
	}
	if sent("default") {
		text, old := field("default"), strings.Join(shownAll(&was, m.Default), "\n")
		switch {
		case textAsStored(text, old) == old, len(m.Default) == 1 && !m.Multiple && !shown("longtext") && asStored(text, old) == old: // unchanged
		case text != "" && shown("longtext"):
			m.Default = []string{text}
		default:
			m.Default = valuesOf(&m, valuesOf(&was, linesAsStored(text, m.Default)))
		}
	}
	m.Other = m.Other && !shown("choice") || field("other") != ""
	if shown("choice") && !m.Other {
		m.MaxLength = 0
	}
	if sent("pattern") {
		m.Pattern, m.PatternHelp = asStored(field("pattern"), m.Pattern), asStored(field("patternHelp"), m.PatternHelp)
	}
	if shown("choice", "file", "text", "email", "url", "phone") {
		m.Multiple = field("multiple") != ""
	}
	if shown("text", "choice") {
		m.Hidden = field("hidden") != ""
	}
	if sent("min") {
		m.Min, m.Max, m.Integer = formsvc.Bound(field("min")), formsvc.Bound(field("max")), field("integer") != ""
		m.MinLabel, m.MaxLabel = asStored(field("minLabel"), m.MinLabel), asStored(field("maxLabel"), m.MaxLabel)
	}
	if sent("accept") {
		m.Accept = strings.FieldsFunc(field("accept"), func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	}
	var equals []string // as stored
	if m.ShowIf != nil {
		equals = m.ShowIf.Equals
	}
	m.ShowIf = nil
	if earlier := v.r.PostForm.Get("showModule." + strconv.Itoa(i)); earlier != "" {
		m.ShowIf = &formsvc.Condition{Module: earlier, Equals: linesAsStored(field("showValues"), equals)}
		if !sent("showValues") && v.r.PostForm.Get("ticked."+strconv.Itoa(i)) == earlier { // else they are of another question
			m.ShowIf.Equals = inOrder(v.r.PostForm["tick."+strconv.Itoa(i)], equals)
		}
	}
	setType(&m, field("type"))
	f.lose(&m, shown(m.Type))
	return m
}

// typeOf returns the type of a module as a page's field has it, with its format, or whether it begins a page. setType reads it.
func typeOf(m formsvc.Module) string {
	switch {
	case m.Page:
		return newPage
	case m.Format == "":
		return string(m.Type)
	}
	return string(m.Type) + ":" + m.Format
}

// newPage is the type of a section that begins a page.
const newPage = "section:page"

func setType(m *formsvc.Module, text string) {
	t, format, _ := strings.Cut(text, ":")
	if m.Type, m.Format, m.Page = formsvc.ModuleType(t), format, text == newPage; m.Page {
		m.Format = ""
	}
}

// types returns the types of questions, with those of the host, and that of a module whose format isn't known any more.
func (h *Handler) types(chosen string) (list []choice) {
	for _, t := range strings.Fields("text longtext choice boolean number rating scale date time email phone url consent file section " + newPage) {
		icon, _, _ := strings.Cut(t, ":")
		list = append(list, choice{Value: t, Text: h.texts["types"][t], Icon: icon})
	}
	of := h.svc.Campaigns.Formats()
	for _, name := range slices.Sorted(maps.Keys(of)) {
		m := formsvc.Module{Type: cmp.Or(of[name].Type, formsvc.TextModule), Format: name}
		list = append(list, choice{Value: typeOf(m), Text: cmp.Or(of[name].Label, name), Icon: string(m.Type)})
	}
	_, format, _ := strings.Cut(chosen, ":")
	if format != "" && !slices.ContainsFunc(list, func(c choice) bool { return c.Value == chosen }) {
		list = append(list, choice{Value: chosen, Text: format})
	}
	return list
}

// typeName returns the type of a module in an owner's words.
func (h *Handler) typeName(m formsvc.Module) string {
	for _, c := range h.types(typeOf(m)) {
		if c.Value == typeOf(m) {
			return c.Text
		}
	}
	return string(m.Type)
}

// asStored returns the stored text if the typed one differs only by what a field of a page can't have: spaces at its ends, and line breaks.
func asStored(typed, stored string) string {
	bare := strings.NewReplacer("\r", "", "\n", "")
	if bare.Replace(typed) == bare.Replace(strings.TrimSpace(stored)) {
		return stored
	}
	return typed
}

// textAsStored is asStored for a field with lines.
func textAsStored(typed, stored string) string {
	if typed == strings.TrimSpace(strings.ReplaceAll(stored, "\r\n", "\n")) {
		return stored
	}
	return typed
}

// lose removes what a question of its type can't have, and notes it. same is whether it was shown with this type.
func (f *campaignForm) lose(m *formsvc.Module, same bool) {
	typed, choice, section := m.Type.Typed(), m.Type == formsvc.ChoiceModule, m.Type == formsvc.SectionModule
	ranged := m.Type.Ranged() && same // a number is no day
	labels := short(200, strings.Join(shownAll(m, m.Options), ", "))
	m.Required = m.Required && !section
	var lost []string
	for _, part := range []struct {
		lost bool
		what string
		drop func()
	}{
		{m.Pattern+m.PatternHelp != "" && !typed, "the pattern of its answers", func() { m.Pattern, m.PatternHelp = "", "" }},
		{m.Other && !choice, "answers beside its choices", func() { m.Other = false }},
		{!choice && len(m.Options) > 0, "the choices " + labels, func() { m.Options, m.Labels, m.Places = nil, nil, nil }},
		{!typed && (!m.Other || !choice) && m.MaxLength > 0, "the limit of characters", func() { m.MaxLength = 0 }},
		{!typed && m.Type != formsvc.NumberModule && m.Placeholder != "", "the example", func() { m.Placeholder = "" }},
		{(m.Min != "" || m.Max != "" || m.Integer) && !ranged, "the limits of its values", func() { m.Min, m.Max, m.Integer = "", "", false }},
		{m.MinLabel+m.MaxLabel != "" && !m.Type.Steps(), "the words beside its numbers", func() { m.MinLabel, m.MaxLabel = "", "" }},
		{m.Multiple && (section || m.Type.Steps() || m.Type == formsvc.ConsentModule), "that it takes several answers", func() { m.Multiple = false }},
		{m.Hidden && !choice && m.Type != formsvc.TextModule, "that it is never shown", func() { m.Hidden = false }},
		{m.Type != formsvc.FileModule && len(m.Accept) > 0, "the types of files", func() { m.Accept = nil }},
	} {
		if part.lost {
			part.drop()
			lost = append(lost, part.what)
		}
	}
	bad := func(value string) bool { code, _ := m.Check(value); return code != "" }
	if !same && (m.Type == formsvc.ConsentModule && m.Default != nil || slices.ContainsFunc(m.Default, bad)) {
		lost, m.Default = append(lost, "the answer that it begins with"), nil
	}
	if len(lost) > 0 {
		f.Losses = append(f.Losses, fmt.Sprintf("With its new type, “%s” loses %s.", short(60, cmp.Or(m.Label, m.Name)), strings.Join(lost, ", ")))
	}
}

// maxNamed is how many characters of a label its name is made of.
const maxNamed = 200

// freeName makes a name of a label that no other question has: its first words, in lower case.
func (f *campaignForm) freeName(label string) string {
	const most = 40 // letters, unless one word has more
	label = strings.ToLower(short(maxNamed, label))
	words := strings.FieldsFunc(label, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	name := cmp.Or(strings.Join(words, "_"), "question")
	for utf8.RuneCountInString(name) > most && strings.Contains(name, "_") {
		name = name[:strings.LastIndexByte(name, '_')]
	}
	taken := func(name string) bool {
		return name == "email" || name == "firstname" || name == "lastname" || f.answered[name] > 0 || named(f.Modules, name) != nil
	}
	for n, free := 2, name; ; n++ {
		if !taken(free) {
			return free
		}
		free = name + "_" + strconv.Itoa(n)
	}
}

// followRenames changes the conditions on questions that were renamed since the page was shown, and reads the values that were typed.
func (f *campaignForm) followRenames(v *visit) {
	for i := range f.Modules {
		m, was := &f.Modules[i], v.r.PostForm.Get("was."+strconv.Itoa(i))
		for later := range f.Modules {
			on := f.Modules[later].ShowIf
			if on != nil && on.Module == cmp.Or(was, m.Name) && on.Module != "" {
				on.Module, on.Equals = m.Name, f.renamedIn(i, valuesOf(m, on.Equals))
			}
		}
		m.Default = f.renamedIn(i, m.Default)
	}
}

// renamedIn returns values of a question, with the new ones of those that were renamed.
func (f *campaignForm) renamedIn(i int, values []string) []string {
	list := slices.Clone(values)
	for n, value := range list {
		list[n] = cmp.Or(f.renamed[i][value], value)
	}
	return list
}

// markConditions says at each question why its condition can't be kept. Nothing of it is dropped.
func (f *campaignForm) markConditions(v *visit) {
	for i := range f.Modules {
		on, at := f.Modules[i].ShowIf, fmt.Sprintf("modules.%d.showIf", i)
		if on == nil {
			continue
		}
		m := named(f.Modules, on.Module)
		switch {
		case m == nil || !m.Type.Answered():
			v.wrong[at] = fmt.Sprintf("The question that this depends on, “%s”, is gone. Choose another one, or “always ask”.", short(60, on.Module))
		case named(f.Modules[:i], on.Module) == nil:
			v.wrong[at] = fmt.Sprintf("This depends on “%s”, which must come before it.", short(60, cmp.Or(m.Label, on.Module)))
		case m.Type == formsvc.ChoiceModule && len(m.Options) > 0:
			for _, value := range on.Equals {
				if !slices.Contains(m.Options, value) {
					before := named(v.campaign.Modules, on.Module).Shown(value)
					v.wrong[at] = fmt.Sprintf("“%s” has no choice “%s” any more.", short(60, cmp.Or(m.Label, on.Module)), short(60, before))
				}
			}
		}
	}
}

// Earlier returns what the condition of a question may depend on: the questions before it, and that which it names already.
func (f campaignForm) Earlier(i int) (list []choice) {
	on := f.Modules[i].ShowIf
	for _, m := range f.Modules[:i] {
		if m.Name != "" && m.Type.Answered() {
			list = append(list, choice{Value: m.Name, Text: short(60, cmp.Or(m.Label, m.Name)), Chosen: on != nil && on.Module == m.Name})
		}
	}
	if on != nil && !slices.ContainsFunc(list, func(c choice) bool { return c.Chosen }) {
		list = append(list, choice{Value: on.Module, Text: "“" + short(60, on.Module) + "”, not asked before", Chosen: true})
	}
	return list
}

// Ticks returns the choices of the question that the condition of a question depends on, if these are all that it can have, and values of the
// condition that are gone.
func (f campaignForm) Ticks(i int) (list []choice) {
	on := f.Modules[i].ShowIf
	if on == nil {
		return nil
	}
	m := named(f.Modules, on.Module)
	if m == nil || len(m.Choices()) == 0 {
		return nil
	}
	for _, value := range m.Choices() {
		list = append(list, choice{Value: value, Text: m.Shown(value), Chosen: slices.Contains(on.Equals, value)})
	}
	for _, value := range on.Equals {
		if !slices.Contains(m.Choices(), value) {
			list = append(list, choice{Value: value, Text: value + " (no longer a choice)", Chosen: true})
		}
	}
	return list
}

// Focused reports whether the question was just added.
func (f campaignForm) Focused(i int) bool { return f.Focus == i+1 }

// Opened reports whether the card of a question is open: that in work, and those with an error.
func (f campaignForm) Opened(i int) bool {
	return f.Focused(i) || f.Open == i+1 || slices.Contains(f.faulty, i)
}

// Asks tells when a question is asked, in words; "" for always.
func (f campaignForm) Asks(i int) string { return asks(f.Modules, f.Modules[i].ShowIf) }

func asks(list []formsvc.Module, on *formsvc.Condition) string {
	if on == nil {
		return ""
	}
	values := shownAll(named(list, on.Module), on.Equals)
	return fmt.Sprintf("if “%s” is %s", short(40, labelIn(list, on.Module)), short(60, strings.Join(values, " or ")))
}

// Stored returns the name under which the question is stored, or "" for a new one.
func (f campaignForm) Stored(i int) string { return f.stored[i] }

// mostAsked is how many responses are read to tell which answers a change hides.
const mostAsked = 1_000

// readAnswered counts the answers of the newest responses, by the name of a question, and by name, NUL and value for the choices of the stored
// campaign. It returns how many responses it read.
func (v *visit) readAnswered() (counts map[string]int, read int, err error) {
	counts = map[string]int{}
	if v.campaign.ResponseCount == 0 {
		return counts, 0, nil
	}
	list, err := v.svc.Responses.List(v.ctx(), formsvc.ResponseQuery{
		AccountID: v.account(), CampaignID: v.campaign.ID, NoTotal: true, Page: formsvc.PageQuery{Limit: mostAsked, MaxBytes: maxPage},
	})
	eachAnswer(list.Items, func(name string, values []string) {
		if len(values) > 0 {
			counts[name]++
		}
		m := named(v.campaign.Modules, name)
		for _, value := range values {
			if m != nil && slices.Contains(m.Options, value) {
				counts[name+"\x00"+value]++
			}
		}
	})
	return counts, len(list.Items), err
}

// confirms reports whether the form must be submitted once more, since saving would lose something that the visitor hasn't been told.
func (v *visit) confirms(f *campaignForm) (asks bool, err error) {
	counts, read, err := v.readAnswered()
	if err != nil {
		return false, err
	}
	for _, m := range v.campaign.Modules {
		label, now := short(60, cmp.Or(m.Label, m.Name)), named(f.Modules, m.Name)
		if n := counts[m.Name]; n > 0 && (now == nil || now.Type == formsvc.SectionModule) {
			f.Losses = append(f.Losses, fmt.Sprintf("Answers to “%s” (%d of the last %d responses have one) are then shown as those of an old question.", label, n, read))
		}
		for _, value := range m.Options {
			if n := counts[m.Name+"\x00"+value]; n > 0 && now != nil && !slices.Contains(now.Options, value) && now.Type == m.Type {
				f.Losses = append(f.Losses, fmt.Sprintf("“%s” is no choice of “%s” any more: %d of the last %d responses chose it. They keep it.",
					short(60, m.Shown(value)), label, n, read))
			}
		}
	}
	f.Confirm = hash(strings.Join(f.Losses, "\n"))
	return len(f.Losses) > 0 && v.field("confirm") != f.Confirm, nil
}
