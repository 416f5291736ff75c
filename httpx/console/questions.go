package console

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
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
	name := v.r.PostForm.Get("stored." + strconv.Itoa(i))
	at := slices.IndexFunc(v.campaign.Modules, func(m formsvc.Module) bool { return m.Name == name && name != "" })
	if at >= 0 {
		m = v.campaign.Modules[at]
	}
	f.stored = append(f.stored, m.Name)
	m.Name, m.Label, m.Help, m.Required = asStored(field("name"), m.Name), asStored(field("label"), m.Label), asStored(field("help"), m.Help), field("required") != ""
	sent := func(name string) bool { return v.r.PostForm.Has(name + "." + strconv.Itoa(i)) }
	shown := func(types ...formsvc.ModuleType) bool {
		return slices.Contains(types, formsvc.ModuleType(field("shown")))
	}
	if sent("maxLength") {
		m.MaxLength = 0
		if text := field("maxLength"); text != "" {
			var err error
			if m.MaxLength, err = strconv.Atoi(text); err != nil {
				m.MaxLength = -1 // is refused
			}
		}
	}
	if sent("placeholder") {
		m.Placeholder = asStored(field("placeholder"), m.Placeholder)
	}
	if sent("options") {
		m.Options = linesAsStored(field("options"), m.Options)
	}
	if sent("default") {
		text, old := strings.ReplaceAll(field("default"), "\r\n", "\n"), strings.Join(m.Default, "\n")
		switch {
		case text == strings.TrimSpace(old), len(m.Default) == 1 && !m.Multiple && asStored(text, old) == old: // unchanged
		case text != "" && shown("longtext"):
			m.Default = []string{text}
		default:
			m.Default = linesAsStored(text, m.Default)
		}
	}
	if shown("choice", "file", "text", "email", "url") {
		m.Multiple = field("multiple") != ""
	}
	if sent("min") {
		m.Min, m.Max, m.Integer = formsvc.Bound(field("min")), formsvc.Bound(field("max")), field("integer") != ""
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
			m.ShowIf.Equals = slices.Clone(v.r.PostForm["tick."+strconv.Itoa(i)])
		}
	}
	m.Type, m.Format = typeIn(field("type"))
	f.lose(&m, shown(m.Type))
	return m
}

// typeOf returns the type of a module as a page's field has it, with its format. typeIn reads it.
func typeOf(m formsvc.Module) string {
	if m.Format == "" {
		return string(m.Type)
	}
	return string(m.Type) + ":" + m.Format
}

func typeIn(text string) (formsvc.ModuleType, string) {
	t, format, _ := strings.Cut(text, ":")
	return formsvc.ModuleType(t), format
}

// types returns the types of questions, with those of the host, and that of a module whose format isn't known any more.
func (h *Handler) types(chosen string) (list []choice) {
	for _, t := range strings.Fields("text longtext choice boolean number date email url file") {
		list = append(list, choice{Value: t, Text: h.texts["types"][t]})
	}
	of := h.svc.Campaigns.Formats()
	for _, name := range slices.Sorted(maps.Keys(of)) {
		m := formsvc.Module{Type: cmp.Or(of[name].Type, formsvc.TextModule), Format: name}
		list = append(list, choice{Value: typeOf(m), Text: cmp.Or(of[name].Label, name)})
	}
	_, format := typeIn(chosen)
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
	return strings.ReplaceAll(typed, "\r\n", "\n")
}

// linesAsStored is asStored for a list with a value in each line.
func linesAsStored(typed string, stored []string) []string {
	list := lines(typed)
	for i, line := range list {
		for _, s := range stored {
			if s != line && strings.TrimSpace(s) == line && !slices.Contains(stored, line) {
				list[i] = s
			}
		}
	}
	return list
}

// unlisted reports whether a campaign has a choice that can't be a line of its own.
func unlisted(c *formsvc.Campaign) bool {
	bad := func(s string) bool { return strings.TrimSpace(s) == "" || strings.ContainsAny(s, "\r\n") }
	return slices.ContainsFunc(c.Modules, func(m formsvc.Module) bool {
		return slices.ContainsFunc(m.Options, bad) || m.ShowIf != nil && slices.ContainsFunc(m.ShowIf.Equals, bad)
	})
}

// lose removes what a question of its type can't have, and notes it. same is whether it was shown with this type.
func (f *campaignForm) lose(m *formsvc.Module, same bool) {
	var lost []string
	typed := slices.Contains([]formsvc.ModuleType{"text", "longtext", "email", "url"}, m.Type)
	if m.Type != formsvc.ChoiceModule && len(m.Options) > 0 {
		lost, m.Options = append(lost, "the choices "+short(200, strings.Join(m.Options, ", "))), nil
	}
	if !typed && m.MaxLength > 0 {
		lost, m.MaxLength = append(lost, "the limit of characters"), 0
	}
	if !typed && m.Type != formsvc.NumberModule && m.Placeholder != "" {
		lost, m.Placeholder = append(lost, "the example"), ""
	}
	ranged := m.Type == formsvc.NumberModule || m.Type == formsvc.DateModule
	if (m.Min != "" || m.Max != "" || m.Integer) && (!ranged || !same) { // a number is no day
		lost, m.Min, m.Max, m.Integer = append(lost, "the limits of its values"), "", "", false
	}
	if m.Type != formsvc.FileModule && len(m.Accept) > 0 {
		lost, m.Accept = append(lost, "the types of files"), nil
	}
	bad := func(value string) bool { code, _ := m.Check(value); return code != "" }
	if !same && (m.Type == formsvc.FileModule && m.Default != nil || slices.ContainsFunc(m.Default, bad)) {
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
		return name == "email" || name == "firstname" || name == "lastname" || f.answered[name] > 0 ||
			slices.ContainsFunc(f.Modules, func(m formsvc.Module) bool { return m.Name == name })
	}
	for n, free := 2, name; ; n++ {
		if !taken(free) {
			return free
		}
		free = name + "_" + strconv.Itoa(n)
	}
}

// followRenames changes the defaults, and the conditions on questions and choices, that were renamed since the page was shown. As many choices as before,
// with a new one where another was, are a rename.
func (f *campaignForm) followRenames(v *visit) {
	for i := range f.Modules {
		m := &f.Modules[i]
		was, had := v.r.PostForm.Get("was."+strconv.Itoa(i)), lines(v.field("had."+strconv.Itoa(i)))
		for _, stored := range v.campaign.Modules {
			if stored.Name == f.stored[i] {
				had = linesAsStored(v.field("had."+strconv.Itoa(i)), stored.Options)
			}
		}
		renamed := map[string]string{}
		for n, old := range had {
			if len(had) == len(m.Options) && !slices.Contains(m.Options, old) && !slices.Contains(had, m.Options[n]) {
				renamed[old] = m.Options[n]
			}
		}
		m.Default = slices.Clone(m.Default)
		for n, value := range m.Default {
			m.Default[n] = cmp.Or(renamed[value], value)
		}
		for later := range f.Modules {
			on := f.Modules[later].ShowIf
			if on == nil || on.Module != cmp.Or(was, m.Name) || was == "" && m.Name == "" {
				continue
			}
			on.Module = m.Name
			for n, value := range on.Equals {
				on.Equals[n] = cmp.Or(renamed[value], value)
				if said := map[string]string{"yes": "true", "no": "false"}[strings.ToLower(value)]; m.Type == formsvc.BooleanModule && said != "" {
					on.Equals[n] = said
				}
			}
		}
	}
}

// markConditions says at each question why its condition can't be kept. Nothing of it is dropped.
func (f *campaignForm) markConditions(v *visit) {
	for i := range f.Modules {
		on, at := f.Modules[i].ShowIf, fmt.Sprintf("modules.%d.showIf", i)
		if on == nil {
			continue
		}
		if v.wrong == nil {
			v.wrong = map[string]string{}
		}
		place := slices.IndexFunc(f.Modules, func(m formsvc.Module) bool { return m.Name == on.Module && m.Type != formsvc.FileModule })
		switch {
		case place < 0:
			v.wrong[at] = fmt.Sprintf("The question that this depends on, “%s”, is gone. Choose another one, or “always ask”.", short(60, on.Module))
		case place >= i:
			v.wrong[at] = fmt.Sprintf("This depends on “%s”, which must come before it.", short(60, cmp.Or(f.Modules[place].Label, on.Module)))
		case f.Modules[place].Type == formsvc.ChoiceModule && len(f.Modules[place].Options) > 0:
			for _, value := range on.Equals {
				if !slices.Contains(f.Modules[place].Options, value) {
					v.wrong[at] = fmt.Sprintf("“%s” has no choice “%s” any more.", short(60, cmp.Or(f.Modules[place].Label, on.Module)), short(60, value))
				}
			}
		}
	}
}

// Earlier returns what the condition of a question may depend on: the questions before it, and that which it names already.
func (f campaignForm) Earlier(i int) (list []choice) {
	on := f.Modules[i].ShowIf
	found := on == nil
	for _, m := range f.Modules[:i] {
		if m.Name != "" && m.Type != formsvc.FileModule {
			chosen := on != nil && on.Module == m.Name
			found = found || chosen
			list = append(list, choice{m.Name, short(60, cmp.Or(m.Label, m.Name)), chosen})
		}
	}
	if !found {
		list = append(list, choice{on.Module, "“" + short(60, on.Module) + "”, not asked before", true})
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
	at := slices.IndexFunc(f.Modules, func(m formsvc.Module) bool { return m.Name == on.Module })
	if at < 0 {
		return nil
	}
	values := f.Modules[at].Options
	if f.Modules[at].Type == formsvc.BooleanModule {
		values = []string{"true", "false"}
	}
	if len(values) == 0 {
		return nil
	}
	for _, value := range values {
		list = append(list, choice{value, f.Modules[at].Shown(value), slices.Contains(on.Equals, value)})
	}
	for _, value := range on.Equals {
		if !slices.Contains(values, value) {
			list = append(list, choice{value, value + " (no longer a choice)", true})
		}
	}
	return list
}

// Focused reports whether the question was just added.
func (f campaignForm) Focused(i int) bool { return f.Focus == i+1 }

// Stored returns the name under which the question is stored, or "" for a new one.
func (f campaignForm) Stored(i int) string { return f.stored[i] }

// mostAsked is how many responses are read to tell which answers a change hides.
const mostAsked = 1_000

// readAnswered counts the answers of the newest responses by their names. It returns how many it read.
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
		if n := counts[m.Name]; n > 0 && !slices.ContainsFunc(f.Modules, func(x formsvc.Module) bool { return x.Name == m.Name }) {
			f.Losses = append(f.Losses, fmt.Sprintf("Answers to “%s” (%d of the last %d responses have one) are then shown as those of an old question.",
				short(60, cmp.Or(m.Label, m.Name)), n, read))
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(f.Losses, "\n")))
	f.Confirm = hex.EncodeToString(sum[:8])
	return len(f.Losses) > 0 && v.field("confirm") != f.Confirm, nil
}

// A removedQuestion is what undoes a removal.
type removedQuestion struct {
	At     int
	Stored string // its name in the stored campaign
	Module formsvc.Module
}

// arrange changes the list of questions: do is "add", or "insert" with the number of the question before and a type, or "copy", "up", "down" or
// "remove" with the question's number, or "undo" for the removed one.
func (f *campaignForm) arrange(do, newType, removed string) {
	what, number, _ := strings.Cut(do, ".")
	number, kind, _ := strings.Cut(number, ".")
	i, err := strconv.Atoi(number)
	inRange := err == nil && i >= 0 && i < len(f.Modules)
	swap := func(i int) {
		f.Modules[i-1], f.Modules[i] = f.Modules[i], f.Modules[i-1]
		f.stored[i-1], f.stored[i] = f.stored[i], f.stored[i-1]
	}
	insert := func(i int, m formsvc.Module, stored string) {
		if len(f.Modules) >= maxQuestions {
			f.Problem = fmt.Sprintf("A campaign can have %d questions here, and more over the API.", maxQuestions)
			return
		}
		f.Modules, f.stored, f.Focus = slices.Insert(f.Modules, i, m), slices.Insert(f.stored, i, stored), i+1
	}
	var m formsvc.Module
	switch {
	case what == "add":
		m.Type, m.Format = typeIn(cmp.Or(newType, "text"))
		insert(len(f.Modules), m, "")
	case what == "insert" && inRange:
		m.Type, m.Format = typeIn(cmp.Or(kind, "text"))
		insert(i+1, m, "")
	case what == "copy" && inRange:
		m = f.Modules[i]
		m.Name = f.freeName(m.Label)
		insert(i+1, m, "")
	case what == "remove" && inRange:
		text, _ := json.Marshal(removedQuestion{i, f.stored[i], f.Modules[i]}) // has no value that JSON lacks
		f.Removed = string(text)
		f.Modules, f.stored = slices.Delete(f.Modules, i, i+1), slices.Delete(f.stored, i, i+1)
	case what == "undo":
		var r removedQuestion
		if json.Unmarshal([]byte(removed), &r) == nil && r.At >= 0 {
			insert(min(r.At, len(f.Modules)), r.Module, r.Stored)
		}
	case what == "up" && inRange && i > 0:
		swap(i)
	case what == "down" && inRange && i < len(f.Modules)-1:
		swap(i + 1)
	}
}
