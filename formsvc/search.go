package formsvc

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// ShownTime is the layout of times for people.
const ShownTime = "2 Jan 2006, 15:04"

// Shown returns a value of an answer as people read it: those of yes/no questions and consent in words, those of choices by their labels.
func (m *Module) Shown(value string) string {
	switch {
	case m == nil:
	case m.Type == ChoiceModule && m.Labels[value] != "":
		return m.Labels[value]
	case m.Type != BooleanModule && m.Type != ConsentModule:
	case value == "true":
		return "Yes"
	case value == "false":
		return "No"
	}
	return value
}

// twoWays is a number that people who write a language without one separator before decimals may read as thousands.
var twoWays = regexp.MustCompile(`^-?[1-9][0-9]{0,2}\.[0-9]{3}$`)

// WriteNumber returns a number of JSON's notation as people of a language write it, so that they read it in one way. mark is the
// language's separator before decimals, "" if people who write it differ.
func WriteNumber(number, language, mark string) string {
	end := ""
	switch {
	case strings.ContainsAny(number, "eE"):
		return number // nobody writes this otherwise
	case mark != "" || !twoWays.MatchString(number):
	case language == "ar":
		mark = "٫"
	default:
		mark, end = ",", "0"
	}
	return strings.Replace(number, ".", cmp.Or(mark, "."), 1) + end
}

// ShownValues joins the values of an answer as people read them.
func (m *Module) ShownValues(values []string) string {
	list := make([]string, len(values))
	for i, value := range values {
		list[i] = m.Shown(value)
	}
	return m.Join(list, strings.Clone)
}

// Join joins the values of an answer with "; ". In questions that may have several, a value that could be mistaken for several is in
// quotes, so that no two lists look the same. edit changes each value after that. Without a module, none is in quotes.
func (m *Module) Join(values []string, edit func(string) string) string {
	list := make([]string, len(values))
	for i, value := range values {
		if m != nil && (len(values) > 1 || m.Multiple) && (strings.Contains(value, ";") || strings.HasPrefix(value, `"`)) {
			value = `"` + strings.ReplaceAll(value, `"`, `""`) + `"`
		}
		list[i] = edit(value)
	}
	return strings.Join(list, "; ")
}

// A Search finds responses by a text as people read it, without regard to case and accents, and by conditions on answers ([Search.Where]).
type Search struct {
	text    string
	modules map[string]*Module
	zone    *time.Location               // nil: times and statuses aren't searched
	where   map[string]func(string) bool // the conditions on a value, by question
}

// minTime is the shortest text that is looked for in times, in bytes: as long as "1 Jan".
const minTime = 5

// NewSearch returns a search in the responses of a campaign with these modules. With a zone it also finds statuses, and times as
// [ShownTime] and ISO 8601 write them there.
func NewSearch(text string, modules []Module, zone *time.Location) *Search {
	s := &Search{text: plainText(text), modules: make(map[string]*Module, len(modules)), zone: zone, where: map[string]func(string) bool{}}
	for i := range modules {
		s.modules[modules[i].Name] = &modules[i]
	}
	return s
}

// Finds reports whether the reference, the name, the e-mail address or an answer contains the text, and the answers meet the conditions.
func (s *Search) Finds(r *Response) bool {
	if met := s.meets(r); !met || s.text == "" {
		return met
	}
	has := func(text string) bool { return strings.Contains(plainText(text), s.text) }
	if has(r.Reference) || has(r.User.FirstName+" "+r.User.LastName) || has(r.User.Email) {
		return true
	}
	if s.zone != nil {
		at := r.CreatedAt.In(s.zone)
		if has(r.Status) || len(s.text) >= minTime && (has(at.Format(ShownTime)) || has(at.Format(time.DateTime))) {
			return true
		}
	}
	found := false
	_ = r.Answers.Each(func(name string, values []string) error { // stored answers can be read
		m := s.modules[name]
		found = found || slices.ContainsFunc(values, has) || m != nil && has(m.ShownValues(values))
		return nil
	})
	return found
}

// Contains reports whether the reference, the name, the e-mail address or an answer contains the text, whatever its case and accents.
func (r *Response) Contains(text string) bool { return NewSearch(text, nil, nil).Finds(r) }

// plainLetters replaces letters that have no accent which could be taken off, and the final sigma.
var plainLetters = strings.NewReplacer("ß", "ss", "æ", "ae", "œ", "oe", "ø", "o", "ł", "l", "đ", "d", "ð", "d", "ı", "i", "ς", "σ") //nolint:gochecknoglobals // immutable

// plainText returns a text in small letters, without the accents of scripts that are also written without them.
func plainText(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for _, r := range norm.NFKD.String(s) {
		if unicode.In(r, unicode.Mn) && unicode.In(r, unicode.Inherited, unicode.Hebrew, unicode.Arabic) && r != '\u3099' && r != '\u309a' {
			continue
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return norm.NFC.String(plainLetters.Replace(b.String()))
}
