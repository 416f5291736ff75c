package intake

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/theme"
)

// A page is the data of the template.
type page struct {
	T             texts
	Root, Version string // the relative path to the handler, and the version of the assets
	Title, About  string
	Problems      []link  // all errors, above the title
	Fields        []field // none: not a form
	Files, Dates  bool    // whether a field takes files, or is a date or time, which browsers must check
	Page          string  // the field _page; "" for none
	Button        string  // of a page that asks one thing; "" for none
	Reference     string  // of the response that was sent
	Left          string  // how many places are left, if they are few
	Trap          bool    // whether there is a field for bots
	Gone          bool    // whether there is no form any more that takes what was typed
	Scripts       bool
	Paged         bool // whether a section begins a page
	Frame         theme.Frame
	Style, Looks  theme.Style // of all forms, and of this one
	Preview       bool        // in a frame under the policy of the console, which allows no CSS inside
	Logo, Cover   picture
	LogoAlt       string
	Origins       string // of pages that embed this one, separated by spaces; "" for none
}

// A link is an error in the summary. Href is "" if it belongs to no field.
type link struct{ Href, Text string }

// A field is one question.
type field struct {
	T                     texts
	ID, Name, Label       string
	Kind                  string // "longtext", "select", or the type of the input; "hidden" has nothing but values
	Mode, Complete        string // inputmode, autocomplete
	Placeholder           string
	Required, Native      bool // whether it is required, and whether the browser checks that
	Multiple              bool
	Most                  int // characters; 0 for no limit
	Values                []string
	Options               []option
	Notes                 []note
	Error                 string
	If, Equals, Described string // the condition for the script; the identifiers of the notes
	Value, Alone          string // of one input among several: its value and its accessible name
	Number                bool   // whether the condition is about a number
	Again, Without        bool   // whether a file must be chosen again, or was said to be left out
	Min, Max, Accept      string // attributes
	Steps                 bool   // whether its options are a row of numbers
	Ends                  []note // beside the row's first and last number
	Other                 bool   // whether it takes an answer of the visitor's own
	Own                   string // that answer
	Page                  bool   // whether it is a section that begins a page
	Needed                bool   // whether the script checks that there is an answer
	module                *formsvc.Module
}

type option struct {
	Value, Label string
	Chosen       bool
	Note         string // about its places
	Full         bool   // whether it can't be chosen
	Own          bool   // the visitor's own answer, which is typed beside it
}

// A note stands between a label and its input.
type note struct{ Kind, Text string }

// Grouped reports whether the field has several inputs.
func (f field) Grouped() bool { return f.Kind == "radio" || f.Kind == "checkbox" || len(f.Values) > 1 }

// At returns the field for one of its inputs.
func (f field) At(i int) field {
	f.Value = f.Values[i]
	if len(f.Values) > 1 {
		label := []rune(f.Label)
		f.Alone = string(label[:min(len(label), 40)]) + " " + strconv.Itoa(i+1) // each input repeats it
		f.Described, f.Required, f.Native = "", false, false                    // any of them is enough
	}
	if i > 0 {
		f.ID += "-" + strconv.Itoa(i+1)
	}
	return f
}

const (
	radiosAtMost = 6   // more options are a select
	inputs       = 3   // of a question that takes several values, before a script adds some
	inputsMost   = 100 // of a question
	maxName      = 200 // characters of a user's name
	inputSize    = 300 // bytes of an input without its value and label
)

// newFields returns the user's fields and those of the modules, with what was typed if s isn't nil.
func (v *visit) newFields(s *sent) []field {
	c, left := v.campaign, typedSize
	modules := make(map[string]*formsvc.Module, len(c.Modules))
	for i := range c.Modules {
		modules[c.Modules[i].Name] = &c.Modules[i]
	}
	var list []field
	for _, user := range []struct{ name, kind, complete string }{
		{"email", "email", "email"}, {"firstName", "text", "given-name"}, {"lastName", "text", "family-name"},
	} {
		m := modules[user.name]
		f := field{Label: v.t[user.name], Kind: user.kind, Complete: user.complete, Required: !c.EmailOptional}
		if user.name != "email" {
			if c.Form.HideName && m == nil && v.filled[user.name] == nil && (s == nil || s.form[user.name] == nil) {
				continue
			}
			f.Most, f.Required = maxName, c.RequireName
		}
		if m != nil { // asked once
			f.Label, f.Placeholder, f.Required = cmp.Or(m.Label, f.Label), m.Placeholder, f.Required || m.Required && m.ShowIf == nil
			f.module = m
			f.addNote("help", m.Help)
			f.addNote("pattern", m.PatternHelp)
			if m.MaxLength > 0 {
				f.Most = m.MaxLength
			}
		}
		f.Name = user.name
		list = append(list, f)
	}
	for i := range c.Modules {
		if m := &c.Modules[i]; !isUser(m.Name) {
			list = append(list, v.newField(m, modules))
		}
	}
	fresh := s == nil
	if fresh {
		s = &sent{}
	} else if len(c.Modules) == 0 { // what a form on somebody's own site asks
		for _, name := range s.names {
			if !isUser(name) && !s.ours(name) {
				list = append(list, field{Name: name, Label: name, Kind: "longtext", Multiple: len(s.form[name]) > 1})
			}
		}
	}
	files := slices.ContainsFunc(list, func(f field) bool { return f.Kind == "file" })
	paged := slices.ContainsFunc(list, func(f field) bool { return f.Page })
	hidden := c.Hidden(s.input.Answers)
	for i := range list {
		f := &list[i]
		f.T, f.ID = v.t, "q"+strconv.Itoa(i+1)
		// With files the browser checks first, since an error after an upload is costly. It can't know the conditions.
		f.Native = files && f.Required && f.If == "" && f.Kind != "checkbox" && !f.Other
		f.Needed = paged && f.Required
		f.Again = f.Kind == "file" && s.expects(f.Name) && !hidden[f.Name]
		f.Without = f.Again && slices.Contains(s.form["_without"], f.Name)
		typed := s.form[f.Name]
		if m := modules[f.Name]; fresh && v.filled[f.Name] != nil {
			typed = v.written(m, v.filled[f.Name])
		} else if fresh && m != nil {
			typed = v.written(m, m.Default)
		} else if f.Kind == "hidden" {
			typed = v.fitting(m, typed) // nobody can correct it
		}
		f.fill(typed, &left)
		v.offer(f, fresh)
		f.describe()
	}
	return list
}

// written returns values of a module, or of a user's field for nil, as a visitor would write them.
func (v *visit) written(m *formsvc.Module, values []string) []string {
	list := slices.Clone(values)
	for i := range list {
		if m != nil && m.Type == formsvc.NumberModule {
			list[i] = v.t.number(list[i])
		}
	}
	return list
}

func isUser(name string) bool { return userField(&formsvc.User{}, name) != nil }

// userField returns the field of a person with the name, or nil.
func userField(u *formsvc.User, name string) *string {
	switch name {
	case "email":
		return &u.Email
	case "firstName":
		return &u.FirstName
	case "lastName":
		return &u.LastName
	}
	return nil
}

// newField returns the field of a module.
func (v *visit) newField(m *formsvc.Module, modules map[string]*formsvc.Module) field {
	f := field{
		Name: m.Name, Label: labelOf(m), Placeholder: m.Placeholder, Required: m.Required, Multiple: m.Multiple, Most: m.MaxLength,
		Accept: strings.Join(m.Accept, ","), module: m, Other: m.Other, Page: m.Page,
	}
	if m.Hidden {
		f.Kind = "hidden"
		return f
	}
	f.addNote("help", m.Help)
	f.addNote("pattern", m.PatternHelp)
	if on := m.ShowIf; on != nil {
		text, _ := json.Marshal(on.Equals) // strings
		f.If, f.Equals, f.Number = on.Module, string(text), modules[on.Module].Type == formsvc.NumberModule
		f.addNote("only", v.only(on, modules[on.Module]))
	}
	if m.MaxLength > 0 {
		f.addNote("most", v.t.format("most", m.MaxLength))
	}
	f.Kind = cmp.Or(map[formsvc.ModuleType]string{
		formsvc.LongTextModule: "longtext", formsvc.EmailModule: "email", formsvc.URLModule: "url", formsvc.DateModule: "date",
		formsvc.FileModule: "file", formsvc.BooleanModule: "radio", formsvc.ChoiceModule: "radio", formsvc.PhoneModule: "tel",
		formsvc.TimeModule: "time", formsvc.RatingModule: "radio", formsvc.ScaleModule: "radio", formsvc.ConsentModule: "consent", formsvc.SectionModule: "section",
	}[m.Type], "text")
	switch m.Type {
	case formsvc.NumberModule:
		f.Mode = "decimal" // an input of type number would drop what isn't one
		if m.Integer {
			f.addNote("whole", v.t["whole"])
		}
		f.addNote("range", v.bounds(m))
	case formsvc.PhoneModule:
		f.Mode, f.Complete = "tel", "tel"
	case formsvc.DateModule, formsvc.TimeModule:
		f.Min, f.Max = string(m.Min), string(m.Max)
		f.addNote("range", v.bounds(m))
	case formsvc.FileModule:
		if len(m.Accept) > 0 {
			f.addNote("types", v.t.format("types", isolate(strings.Join(m.Accept, ", "))))
		}
		f.addNote("most", v.t.format("mostFile", byteCount(v.h.svc.Files.Limit())))
	case formsvc.BooleanModule:
		f.Options = []option{{Value: "true", Label: v.t["yes"]}, {Value: "false", Label: v.t["no"]}}
	case formsvc.ChoiceModule, formsvc.RatingModule, formsvc.ScaleModule, formsvc.ConsentModule:
		f.Steps, f.Ends = m.Type.Steps(), []note{{"min", m.MinLabel}, {"max", m.MaxLabel}}
		for _, o := range m.Choices() {
			f.Options = append(f.Options, option{Value: o, Label: m.Shown(o)})
		}
		if m.Other {
			f.Options = append(f.Options, option{Label: v.t["other"], Own: true})
		}
		if m.Multiple {
			f.Kind = "checkbox"
			f.addNote("many", v.t["chooseMany"])
		} else if m.Type == formsvc.ChoiceModule && len(m.Options) > radiosAtMost {
			f.Kind = "select"
		}
	}
	if f.Kind == "radio" && !m.Required { // a browser can't take back a radio button
		f.Options = append(f.Options, option{Label: v.t["noAnswer"]})
	}
	return f
}

// bounds returns the sentence about a module's range, or "".
func (v *visit) bounds(m *formsvc.Module) string {
	texts, kind := []any{}, "number"
	for _, b := range []formsvc.Bound{m.Min, m.Max} {
		text := string(b)
		if day, err := time.Parse(time.DateOnly, text); err == nil && m.Type == formsvc.DateModule {
			text, kind = v.t.date(day), "date"
		} else if m.Type == formsvc.TimeModule {
			kind = "time"
		} else {
			text = v.t.number(text)
		}
		if text != "" {
			texts = append(texts, isolate(text))
		}
	}
	switch {
	case len(texts) == 2:
		return v.t.format(kind+"Between", texts...)
	case m.Min != "":
		return v.t.format(kind+"From", texts...)
	case m.Max != "":
		return v.t.format(kind+"To", texts...)
	}
	return ""
}

// only returns the sentence for readers without scripts.
func (v *visit) only(on *formsvc.Condition, m *formsvc.Module) string {
	values := make([]string, len(on.Equals))
	for i, value := range on.Equals {
		if m.Type == formsvc.BooleanModule || m.Type == formsvc.ConsentModule {
			value = v.t[map[string]string{"true": "yes", "false": "no"}[value]]
		}
		values[i] = isolate(m.Shown(value))
	}
	return v.t.format("only", isolate(cmp.Or(m.Label, m.Name)), strings.Join(values, v.t["or"]))
}

// isolate keeps a text of the owner from changing the direction of the text around it.
func isolate(s string) string { return "\u2068" + s + "\u2069" }

func (f *field) addNote(kind, text string) {
	if text != "" {
		f.Notes = append(f.Notes, note{kind, text})
	}
}

// fail sets the error, unless there is one.
func (f *field) fail(text string) {
	if f.Error == "" {
		f.Error = text
		f.describe()
	}
}

func (f *field) describe() {
	ids := make([]string, 0, len(f.Notes)+1)
	for _, n := range slices.Concat(f.Notes, f.Ends) {
		if n.Text != "" {
			ids = append(ids, f.ID+"-"+n.Kind)
		}
	}
	if f.Error != "" {
		ids = append(ids, f.ID+"-error")
	}
	f.Described = strings.Join(ids, " ")
}

// formPage returns the page with the questions, and with what was typed if s isn't nil. Questions that have the names of its own
// fields take their place.
func (v *visit) formPage(s *sent, token string) *page {
	p := &page{Title: v.campaign.Title, About: v.campaign.Form.Description, Page: token, Trap: true}
	p.Fields = v.newFields(s)
	if left, limited := v.places[formsvc.Limited{}]; limited {
		p.Left = v.left(left, v.campaign.Form.MaxResponses)
	}
	for i := range p.Fields {
		f := &p.Fields[i]
		p.Files, p.Dates = p.Files || f.Kind == "file", p.Dates || f.Kind == "date" || f.Kind == "time"
		switch f.Name {
		case "_page":
			p.Page = ""
		case "_honeypot":
			p.Trap = false
		}
		p.Paged = p.Paged || f.Page
	}
	return p
}

// tell adds the errors to a page: each at its field, and all of them at the top in the order of the fields.
func (v *visit) tell(p *page, faults []formsvc.FieldError) {
	at := make(map[string]int, len(p.Fields))
	for i := range p.Fields {
		if p.Fields[i].Kind != "section" {
			at[p.Fields[i].Name] = i
		}
	}
	var others []link
	for _, fault := range faults {
		name := fieldOf(fault.Pointer)
		if i, ok := at[name]; ok && p.Fields[i].Kind != "hidden" {
			p.Fields[i].fail(v.describe(&p.Fields[i], &fault))
		} else if len(others) < 20 {
			short := []rune(name)
			name = isolate(string(short[:min(len(short), 200)]))
			others = append(others, link{Text: strings.TrimPrefix(name+" – ", isolate("")+" – ") + v.describe(&field{}, &fault)})
		}
	}
	for i := range p.Fields {
		f := &p.Fields[i]
		if f.Again && !f.Without {
			f.fail(v.t["filesAgain"])
		}
		if f.Error != "" {
			p.Problems = append(p.Problems, link{"#" + f.ID, isolate(f.Label) + " – " + f.Error})
		}
	}
	p.Problems = append(p.Problems, others...)
}

// fieldOf returns the name of the field that a JSON Pointer belongs to, or "".
func fieldOf(pointer string) string {
	tokens := slices.Collect(jsontext.Pointer(pointer).Tokens())
	if len(tokens) < 2 {
		return ""
	}
	return tokens[1]
}

// describe returns an error in the visitor's words.
func (v *visit) describe(f *field, fault *formsvc.FieldError) string {
	most := map[string]any{
		"too_long": f.Most, "file_too_large": byteCount(v.h.svc.Files.Limit()), "too_large": byteCount(formsvc.MaxAnswersSize), "too_many_names": namesAtMost,
	}[fault.Code]
	switch code := fault.Code; {
	case code == "nul_not_allowed" || code == "duplicate" || most == 0:
		return v.t["error_invalid"]
	case most != nil:
		return v.t.format("error_"+code, most)
	case code == "ambiguous":
		read := v.sent.reads[f.Name]
		return v.t.format("error_ambiguous", isolate(read[0]), isolate(read[1]))
	case code == "out_of_range" && f.module != nil:
		return v.bounds(f.module)
	case code == "file_type" && f.module != nil:
		return v.t.format("error_file_type", isolate(strings.Join(f.module.Accept, ", ")))
	case code == "pattern_mismatch" && f.module != nil && f.module.PatternHelp != "":
		return isolate(f.module.PatternHelp)
	case code == "file_again":
		return v.t["filesAgain"]
	case code == "required" && (f.Kind == "file" || f.Kind == "consent"):
		return v.t["error_required_"+f.Kind]
	case code == "required" && f.Options != nil:
		return v.t["error_required_choice"]
	case code == "invalid_number" && f.module != nil && f.module.Integer:
		return v.t["error_not_integer"]
	case code == "invalid_number":
		return v.t.format("error_invalid_number", strings.Replace("0.5", ".", cmp.Or(v.t["decimal"], ","), 1))
	}
	return cmp.Or(v.t["error_"+fault.Code], fault.Detail, v.t["error_invalid"]) // a host's rule has words of its own
}
