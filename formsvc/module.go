package formsvc

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// ModuleType says which values a module accepts. Values are always strings.
type ModuleType string

// The module types.
const (
	TextModule     ModuleType = "text"     // any text, at most MaxLength characters; the default
	LongTextModule ModuleType = "longtext" // the same, which a form asks for in several lines
	EmailModule    ModuleType = "email"    // an e-mail address
	URLModule      ModuleType = "url"      // an absolute http or https URL
	NumberModule   ModuleType = "number"   // a decimal number in JSON's notation
	DateModule     ModuleType = "date"     // a day, YYYY-MM-DD
	BooleanModule  ModuleType = "boolean"  // "true" or "false"
	ChoiceModule   ModuleType = "choice"   // one of Options
	PhoneModule    ModuleType = "phone"    // a telephone number, written freely with 6 to 20 digits
	TimeModule     ModuleType = "time"     // a time of day, HH:MM
	RatingModule   ModuleType = "rating"   // a whole number from Min to Max
	ScaleModule    ModuleType = "scale"    // the same, with other defaults of Min and Max
	ConsentModule  ModuleType = "consent"  // "true"; somebody who doesn't consent leaves it out
	// FileModule has no answer: files are uploaded with the module's name. Only a public form heeds
	// Required and Multiple, since over the API files follow the response.
	FileModule ModuleType = "file"
	// SectionModule has neither an answer nor files: a form shows its Label as a heading, and its Help below.
	SectionModule ModuleType = "section"
)

// ModuleTypes returns every module type there is.
func ModuleTypes() []ModuleType {
	return []ModuleType{
		TextModule, LongTextModule, EmailModule, URLModule, NumberModule, DateModule, BooleanModule, ChoiceModule, FileModule,
		PhoneModule, TimeModule, RatingModule, ScaleModule, ConsentModule, SectionModule,
	}
}

// Steps reports whether values are chosen from a row of whole numbers.
func (t ModuleType) Steps() bool { return t == RatingModule || t == ScaleModule }

// Numeric reports whether values are numbers.
func (t ModuleType) Numeric() bool { return t == NumberModule || t.Steps() }

// Ranged reports whether values can be compared, so that Min and Max apply.
func (t ModuleType) Ranged() bool { return t.Numeric() || t == DateModule || t == TimeModule }

// A Module is one question of a campaign.
type Module struct {
	Name        string     `json:"name"`          // unique in its campaign, 1 to 200 characters
	Label       string     `json:"label"`         // at most 1,000 characters
	Help        string     `json:"help"`          // shown below the label, at most 2,000 characters
	Placeholder string     `json:"placeholder"`   // shown in an empty field of text, longtext, email, url, phone and number; at most 200 characters
	Type        ModuleType `json:"type,omitzero"` // "" means TextModule
	Required    bool       `json:"required"`      // an answer must have a value that can be seen, unless the module is hidden
	Options     []string   `json:"options"`       // for ChoiceModule: 1 to 1,000 distinct values
	// Labels has what people read in place of a value of Options: at most 500 characters each, no two choices alike. A value without a
	// label is its own. Renaming a choice changes its label, so that answers and conditions keep their value.
	Labels    map[string]string `json:"labels,omitempty"`
	MaxLength int               `json:"maxLength"` // characters a value may have, for text, longtext, email, url and phone, and a choice's own one; 0 means no limit
	Multiple  bool              `json:"multiple"`  // more than one value, or file, is allowed; not for rating, scale, consent and section
	ShowIf    *Condition        `json:"showIf"`    // nil: always shown
	// Min and Max are the least and the greatest value, for number, date, time, rating and scale; "" means none, and is stored as 1 and 5
	// for rating and as 0 and 10 for scale. Max isn't below Min, and for rating and scale at most 100 above it.
	Min      Bound          `json:"min,omitzero"`
	Max      Bound          `json:"max,omitzero"`
	MinLabel string         `json:"minLabel,omitzero"` // shown beside Min, for rating and scale; at most 200 characters
	MaxLabel string         `json:"maxLabel,omitzero"` // shown beside Max, likewise
	Integer  bool           `json:"integer,omitzero"`  // for number: the value must be whole
	Accept   []string       `json:"accept,omitempty"`  // for FileModule, at most 50: types such as image/png or image/*, or extensions such as .pdf; none means all
	Format   string         `json:"format,omitzero"`   // a name in [Options].Formats; "" means none
	Places   map[string]int `json:"places,omitempty"`  // for ChoiceModule: how many responses may have a value of Options, at least 1; one without an entry has no limit
	// Pattern is an expression of package regexp that a whole value must match, for text, longtext, email, url and phone: at most 500
	// characters. PatternHelp, at most 500 too, tells people what that is.
	Pattern     string   `json:"pattern,omitzero"`
	PatternHelp string   `json:"patternHelp,omitzero"`
	Other       bool     `json:"other,omitzero"`    // for ChoiceModule: an answer may have one value of its own, without spaces around it
	Page        bool     `json:"page,omitzero"`     // for SectionModule: it begins a new page of the form
	Default     []string `json:"default,omitempty"` // what a form shows as the answer at first, at most 100 values; an answer that isn't sent stays empty
	// Hidden keeps a form from showing the question, for text and choice: only Default and [Form].Prefill fill it in. The answer is
	// a visitor's input as any other. It isn't required, and has no ShowIf.
	Hidden bool `json:"hidden,omitzero"`
}

// A Condition hides its module unless an earlier one is shown and has certain values. A hidden module isn't required,
// and takes no value.
type Condition struct {
	Module string   `json:"module"` // the name of an earlier module with answers
	Equals []string `json:"equals"` // one of these values is needed, compared exactly: 1 to 100, of at most 500 characters each
}

// Limits of a campaign, which keep it small enough to be read for every response that is checked against it.
const (
	maxTitle       = 500 // contract
	maxDescription = 10_000
	maxModules     = 500
	maxModuleName  = 200 // contract
	maxLabel       = 1_000
	maxHelp        = 2_000
	maxPlaceholder = 200
	maxSteps       = 100 // from Min to Max of a rating
	maxEquals      = 100
	maxOptions     = 1_000
	maxOption      = 500
	maxAccept      = 50
)

func (e *ValidationError) checkModules(modules []Module) []Module {
	if len(modules) > maxModules {
		e.add("/modules", "too_many", "must have at most %d modules", maxModules)
		return modules
	}
	modules = slices.Clone(modules)
	seen, patterns := make(map[string]bool, len(modules)), 0
	for i := range modules {
		m, pointer := &modules[i], fmt.Sprintf("/modules/%d", i)
		if m.Name == "" {
			e.add(pointer+"/name", "required", "must not be empty")
		} else if seen[m.Name] {
			e.add(pointer+"/name", "duplicate", "must be unique in the campaign")
		}
		seen[m.Name] = true
		e.checkLine(pointer+"/name", m.Name, maxModuleName)
		e.checkLine(pointer+"/label", m.Label, maxLabel)
		e.checkLine(pointer+"/help", m.Help, maxHelp)
		e.checkLine(pointer+"/placeholder", m.Placeholder, maxPlaceholder)
		e.checkModuleType(pointer, m)
		e.checkBounds(pointer, m)
		if m.Pattern != "" {
			patterns++
		}
		e.checkPattern(pointer, m, patterns)
		e.checkSection(pointer, m)
		e.checkFormat(pointer, m)
		e.checkHidden(pointer, m)
		if m.ShowIf != nil {
			e.checkCondition(pointer+"/showIf", m.ShowIf, modules[:i])
		}
	}
	return modules
}

func (e *ValidationError) checkModuleType(pointer string, m *Module) {
	if m.Type = cmp.Or(m.Type, TextModule); !slices.Contains(ModuleTypes(), m.Type) {
		types := strings.Trim(fmt.Sprint(ModuleTypes()), "[]")
		e.add(pointer+"/type", "invalid_value", "must be one of %s", strings.ReplaceAll(types, " ", ", "))
		return
	}
	if of, ok := map[string]ModuleType{"email": EmailModule, "firstName": TextModule, "lastName": TextModule}[m.Name]; ok && m.Type != of {
		e.add(pointer+"/name", "reserved", "is the name of a field of the user, whose type is %s", of)
	}
	example := m.Placeholder != "" && !m.Type.Typed() && m.Type != NumberModule
	e.misplaced(example, pointer+"/placeholder", "applies to text, longtext, email, url, phone and number only")
	if m.MaxLength < 0 || m.MaxLength > 1_000_000 {
		e.add(pointer+"/maxLength", "out_of_range", "must be between 0 and 1000000")
	} else if m.MaxLength > 0 && !m.Type.Typed() && !m.Other {
		e.add(pointer+"/maxLength", "not_applicable", "applies to text, longtext, email, url, phone and choices with other only")
	}
	several := m.Multiple && (m.Type.Steps() || m.Type == ConsentModule || m.Type == SectionModule)
	e.misplaced(several, pointer+"/multiple", "doesn't apply to rating, scale, consent and section")
	if m.Type != ChoiceModule {
		e.misplaced(len(m.Options) > 0 || len(m.Labels) > 0, pointer+"/options", "applies to choice only")
		m.Options, m.Labels = nil, nil // an empty list would be stored
		return
	}
	if m.Labels = maps.Clone(m.Labels); len(m.Labels) == 0 {
		m.Labels = nil
	}
	if len(m.Options) == 0 || len(m.Options) > maxOptions {
		e.add(pointer+"/options", "out_of_range", "a choice must have between 1 and %d options", maxOptions)
		return
	}
	e.checkOptions(pointer+"/options/", m)
}

// checkOptions notes what is wrong with the values and labels of a choice.
func (e *ValidationError) checkOptions(pointer string, m *Module) {
	values, labels := make(map[string]bool, len(m.Options)), make(map[string]bool, len(m.Options))
	for i, option := range m.Options {
		at := pointer + strconv.Itoa(i)
		label, labelled := m.Labels[option]
		shown := m.Shown(option)
		switch {
		case values[option]:
			e.add(at, "duplicate", "must be unique in the module")
		case labels[shown]:
			e.add(at, "duplicate", "has the label of an earlier option")
		case labelled && !visible(label):
			e.require(at + "/label")
		}
		values[option], labels[shown] = true, true
		e.checkLine(at, option, maxOption)
		e.checkLine(at+"/label", label, maxOption)
	}
	for _, value := range slices.Sorted(maps.Keys(m.Labels)) {
		if !values[value] {
			e.add(strings.TrimSuffix(pointer, "/"), "unknown_option", "has a label for %q, which is no option", value)
		}
	}
}

// checkCondition notes what is wrong with a condition. As it names an earlier module, conditions have no cycles.
func (e *ValidationError) checkCondition(pointer string, c *Condition, earlier []Module) {
	if c.Module == "" {
		e.require(pointer + "/module")
	}
	i := slices.IndexFunc(earlier, func(m Module) bool { return m.Name == c.Module && m.Type.Answered() })
	if c.Module != "" && i < 0 {
		e.add(pointer+"/module", "unknown_module", "must be the name of an earlier module that isn't a file or section")
	}
	if len(c.Equals) == 0 {
		e.require(pointer + "/equals")
	} else if len(c.Equals) > maxEquals {
		e.add(pointer+"/equals", "too_many", "must have at most %d values", maxEquals)
		return
	}
	for n, value := range c.Equals {
		at := fmt.Sprintf("%s/equals/%d", pointer, n)
		e.checkLine(at, value, maxOption)
		if i >= 0 && len(e.Fields) < maxFaults {
			if _, detail := e.check(earlier[i].closed(), value); detail != "" {
				e.add(at, "impossible", "can't be an answer to that module, which %s", detail)
			}
		}
	}
}

// Hidden returns the names of the modules that the answers hide ([Module].ShowIf).
func (in *CampaignInput) Hidden(answers []Answer) map[string]bool {
	given := make(map[string]map[string]bool) // the values of each module that a condition names
	for i := range in.Modules {
		if c := in.Modules[i].ShowIf; c != nil {
			given[c.Module] = make(map[string]bool)
		}
	}
	if len(given) == 0 {
		return nil
	}
	for _, a := range answers {
		if values, named := given[a.Name]; named {
			for _, value := range a.Value {
				values[value] = true
			}
		}
	}
	hidden := make(map[string]bool)
	for i := range in.Modules {
		c := in.Modules[i].ShowIf
		if c != nil && (hidden[c.Module] || !slices.ContainsFunc(c.Equals, func(v string) bool { return given[c.Module][v] })) {
			hidden[in.Modules[i].Name] = true
		}
	}
	return hidden
}

// checkAnswers notes every answer that the campaign's modules don't allow, and returns the answers in their canonical form. A campaign
// without modules allows all answers.
func (e *ValidationError) checkAnswers(in *CampaignInput, answers []Answer) []Answer {
	modules := in.Modules
	if len(modules) == 0 {
		return answers
	}
	answers = in.canonical(answers)
	hidden := in.Hidden(answers)
	index := make(map[string]int, len(modules))
	for i := range modules {
		if modules[i].Type != SectionModule {
			index[modules[i].Name] = i
		}
	}
	answered := make([]bool, len(modules))
	for _, a := range answers {
		pointer := "/responses/" + pointerEscape(a.Name)
		i, ok := index[a.Name]
		if !ok {
			if !badName(a.Name) { // checkNames noted it already
				e.add(pointer, "unknown_module", "is not a module of this campaign")
			}
			continue
		}
		m := &modules[i]
		switch {
		case m.Type == FileModule:
			e.add(pointer, "not_applicable", "is for files, which are uploaded with the module's name")
			continue
		case hidden[m.Name] && len(a.Value) > 0:
			e.add(pointer, "hidden", "must have no value: other answers hide the question")
			continue
		}
		answered[i] = slices.ContainsFunc(a.Value, visible)
		if len(a.Value) > 1 && !m.Multiple {
			e.add(pointer+"/value", "too_many", "takes one value only")
		}
		var known map[string]bool // options that were chosen, so that each is looked for once, however often it comes
		if m.Type == ChoiceModule && len(a.Value) > 1 {
			known = make(map[string]bool)
		}
		own := 0
		for n, value := range a.Value {
			if known[value] || len(e.Fields) == maxFaults {
				continue
			}
			if code, detail := e.check(m, value); code != "" {
				e.add(fmt.Sprintf("%s/value/%d", pointer, n), code, "%s", detail)
			} else if known != nil {
				known[value] = true
				if m.owns(value) {
					own++
				}
			}
			if own > 1 {
				e.add(pointer+"/value", "too_many", "takes one value that isn't an option")
				break
			}
		}
	}
	for i := range modules {
		if m := &modules[i]; m.Required && !answered[i] && !hidden[m.Name] && m.Type.Answered() {
			e.require("/responses/" + pointerEscape(m.Name))
		}
	}
	return answers
}

// ValidNumber reports whether a text is a number as the answers of number questions are.
func ValidNumber(text string) bool { return len(text) <= maxNumber && jsonNumber.MatchString(text) }

// wholeStep is a value of a rating or scale, timeOfDay one of a time.
var (
	wholeStep = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,5})$`)
	timeOfDay = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)
)

// Choices returns the values that answers can have, if they are chosen from a list, or nil.
func (m *Module) Choices() (list []string) {
	switch m.Type {
	case ChoiceModule:
		return m.Options
	case BooleanModule:
		return []string{"true", "false"}
	case ConsentModule:
		return []string{"true"}
	case RatingModule, ScaleModule:
		from, to := m.bounds()
		least, _ := strconv.Atoi(string(from))
		greatest, _ := strconv.Atoi(string(to))
		for n := least; n <= min(greatest, least+maxSteps); n++ {
			list = append(list, strconv.Itoa(n))
		}
	}
	return list
}

// maxNumber is the longest number in bytes.
const maxNumber = 400

// jsonNumber is the grammar of RFC 8259 §6. The exponent is limited, so that expanding the number is always cheap.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$`)

// checkType is [Module.Check] without the pattern.
func (m *Module) checkType(value string) (code, detail string) {
	if m.MaxLength > 0 && utf8.RuneCountInString(value) > m.MaxLength && !slices.Contains(m.Options, value) {
		return "too_long", fmt.Sprintf("must have at most %d characters", m.MaxLength)
	}
	switch m.Type {
	case EmailModule:
		if !validEmail(value) {
			return "invalid_email", "must be an e-mail address"
		}
	case URLModule:
		if httpURL(value) == nil {
			return "invalid_url", "must be an absolute http or https URL"
		}
	case NumberModule:
		if !ValidNumber(value) {
			return "invalid_number", "must be a decimal number such as 12, -0.5 or 1e3"
		}
		return m.checkRange(value)
	case DateModule:
		if day, err := time.Parse(time.DateOnly, value); err != nil || day.Year() == 0 {
			return "invalid_date", "must be a day as YYYY-MM-DD"
		}
		return m.checkRange(value)
	case TimeModule:
		if !timeOfDay.MatchString(value) {
			return "invalid_time", "must be a time of day as HH:MM"
		}
		return m.checkRange(value)
	case RatingModule, ScaleModule:
		if !wholeStep.MatchString(value) {
			return "invalid_" + string(m.Type), "must be a whole number such as 3"
		}
		return m.checkRange(value)
	case PhoneModule:
		digits := strings.FieldsFunc(value, func(r rune) bool { return !unicode.IsDigit(r) })
		if n := utf8.RuneCountInString(strings.Join(digits, "")); n < 6 || n > 20 || strings.ContainsFunc(value, unicode.IsControl) {
			return "invalid_phone", "must be a telephone number with 6 to 20 digits"
		}
	case ConsentModule:
		if value != "true" {
			return "invalid_consent", "must be true; leave it out without consent"
		}
	case BooleanModule:
		if value != "true" && value != "false" {
			return "invalid_boolean", "must be true or false"
		}
	case ChoiceModule:
		if !slices.Contains(m.Options, value) && (!m.Other || !visible(value) || strings.TrimSpace(value) != value) {
			return "unknown_option", "must be one of the module's options"
		}
	case FileModule, SectionModule:
		return "not_applicable", "has no values"
	}
	return "", ""
}

// httpURL parses an absolute http or https URL. It returns nil for any other text.
func httpURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return nil
	}
	return u
}
