package console

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/formsvc/toolkit/formsvc"
)

// maxSnippet is how many bytes of memory a campaign may take whose questions are in snippets.
const maxSnippet = 64 << 10

// snippets are texts to copy that send the form of a campaign.
type snippets struct {
	HTML, Fetch string // "" if the campaign is too large
	Frame       string
	Curl        string // "" if it is too large, or curl can't send one of its names
}

// A question is a field of a pasted form.
type question struct {
	formsvc.Module

	ID, Complete, Hint string
	Repeated           []string // the accessible names of its inputs after the first
	T                  map[string]string
}

// snippets returns the snippets for a form at that address.
func (v *visit) snippets(address string) (s snippets, err error) {
	c := &v.campaign
	language := cmp.Or(c.Form.Language, "en")
	words := v.h.texts[language]
	if words == nil { // of the theme only
		words = v.h.texts["en"]
	}
	words = v.h.theme.Texts(language, words)
	words["send"] = cmp.Or(c.Form.Texts.Button, words["send"])
	data := struct {
		URL, Title string
		Script     string // that gives frames their height
		T          map[string]string
		Files      bool
		Questions  []question
	}{URL: address, Script: v.public(v.h.formsURL) + "/assets/embed.js", Title: short(200, c.Title), T: words}
	show := func(name string) string {
		var b strings.Builder
		err = cmp.Or(err, v.h.snippets.ExecuteTemplate(&b, name, &data))
		var ascii strings.Builder // for pages of any encoding
		for _, r := range b.String() {
			if r < utf8.RuneSelf {
				ascii.WriteRune(r)
			} else {
				fmt.Fprintf(&ascii, "&#%d;", r)
			}
		}
		return ascii.String()
	}
	s.Frame = show("frame")
	if c.Size() <= maxSnippet {
		data.Questions = questions(c, data.T)
		data.Files = slices.ContainsFunc(data.Questions, func(q question) bool { return q.Type == formsvc.FileModule })
		s.HTML, s.Fetch, s.Curl = show("form"), show("fetch"), curlForm(c, example(c), address)
	}
	return s, err
}

// questions returns the user's fields and those of the modules, as the form's own page has them.
func questions(c *formsvc.Campaign, t map[string]string) (list []question) {
	add := func(m formsvc.Module, complete string) {
		q := question{Module: m, ID: "form-" + strings.ToLower(c.FormToken[:6]) + "-" + strconv.Itoa(len(list)+1), Complete: complete, T: t}
		if m.Type != formsvc.SectionModule {
			q.Label = cmp.Or(m.Label, m.Name)
		}
		if on := m.ShowIf; on != nil {
			of := named(c.Modules, on.Module)
			values := shownAll(of, on.Equals)
			for i, value := range on.Equals {
				if of.Type == formsvc.BooleanModule || of.Type == formsvc.ConsentModule {
					values[i] = t[map[string]string{"true": "yes", "false": "no"}[value]]
				}
			}
			q.Required, q.Hint = false, fmt.Sprintf(t["only"], labelIn(c.Modules, on.Module), strings.Join(values, t["or"]))
		}
		if m.Multiple && m.Type != formsvc.ChoiceModule && m.Type != formsvc.FileModule && complete == "" {
			q.Repeated = []string{q.Label + " 2", q.Label + " 3"}
		}
		if m.Type.Steps() {
			q.Options = m.Choices()
		}
		list = append(list, q)
	}
	for _, user := range []struct {
		complete string
		formsvc.Module
	}{
		{"email", formsvc.Module{Name: "email", Type: formsvc.EmailModule, Required: !c.EmailOptional}},
		{"given-name", formsvc.Module{Name: "firstName", MaxLength: 200, Required: c.RequireName}},
		{"family-name", formsvc.Module{Name: "lastName", MaxLength: 200, Required: c.RequireName}},
	} {
		m := user.Module
		own := cmp.Or(named(c.Modules, m.Name), &formsvc.Module{}) // asked once
		if c.Form.HideName && m.Name != "email" && own.Name == "" {
			continue
		}
		m.Label, m.Help, m.Placeholder, m.MaxLength = cmp.Or(own.Label, t[m.Name]), own.Help, own.Placeholder, cmp.Or(own.MaxLength, m.MaxLength)
		m.Required = m.Required || own.Required && own.ShowIf == nil
		add(m, user.complete)
	}
	for _, m := range c.Modules {
		if m.Name != "email" && m.Name != "firstName" && m.Name != "lastName" {
			add(m, "")
		}
	}
	return list
}

// oneWay returns a value of a module as forms of all languages read it in one way: some take 1.234 for thousands.
func oneWay(m *formsvc.Module, value string) string {
	if m != nil && m.Type == formsvc.NumberModule && formsvc.WriteNumber(value, "", "") != value {
		return value + "0"
	}
	return value
}

// example returns answers that the campaign accepts.
func example(c *formsvc.Campaign) []formsvc.Answer {
	if len(c.Modules) == 0 {
		return []formsvc.Answer{{Name: "message", Value: []string{"Hello"}}}
	}
	var answers []formsvc.Answer
	for _, m := range c.Modules {
		least, _ := strconv.ParseFloat(string(m.Min), 64)
		values := []string{
			"Hello", "ada@example.com", "https://example.com", "1", "+44 20 7946 0000", "2026-12-31", "true", "09:30", string(m.Min), string(m.Max),
			strconv.FormatFloat(math.Ceil(least), 'f', -1, 64), "a@b.cd", "http://a", "H", m.Placeholder, // the last one may fit a pattern
		}
		fits := func(value string) bool { code, _ := m.Check(value); return code == "" }
		if values = slices.Concat(m.Default, m.Choices(), values); m.Format != "" {
			values = m.Default // the others may not have the format
		}
		if i := slices.IndexFunc(values, fits); i >= 0 && m.Type != formsvc.FileModule {
			answers = append(answers, formsvc.Answer{Name: m.Name, Value: values[i : i+1]})
		}
	}
	hidden := c.Hidden(answers)
	return slices.DeleteFunc(answers, func(a formsvc.Answer) bool { return hidden[a.Name] })
}

// curlForm returns a line that sends the answers and required files to a form, or "" if curl can't send a name.
func curlForm(c *formsvc.Campaign, answers []formsvc.Answer, address string) string {
	for _, user := range [][2]string{{"lastName", "Lovelace"}, {"firstName", "Ada"}, {"email", "ada@example.com"}} {
		asked := user[0] == "email" || c.RequireName
		if asked && !slices.ContainsFunc(answers, func(a formsvc.Answer) bool { return a.Name == user[0] }) {
			answers = slices.Insert(answers, 0, formsvc.Answer{Name: user[0], Value: []string{user[1]}})
		}
	}
	hidden := c.Hidden(answers)
	var files strings.Builder
	for _, m := range c.Modules {
		if m.Type != formsvc.FileModule || !m.Required || hidden[m.Name] {
			continue
		}
		name, kind := "example.txt", "text/plain"
		if len(m.Accept) > 0 {
			kind = strings.ReplaceAll(m.Accept[0], "*", "plain")
			if strings.HasPrefix(kind, ".") {
				name, kind = "example"+kind, "application/octet-stream"
			}
		}
		files.WriteString(" -F " + shell(m.Name+"=@/dev/null;filename="+name+";type="+kind))
		answers = append(answers, formsvc.Answer{Name: m.Name})
	}
	option := "--data-urlencode "
	if files.Len() > 0 {
		option = "--form-string "
	}
	line := "curl"
	for _, a := range answers {
		if files.Len() > 0 && strings.ContainsAny(a.Name, "=\r\n") {
			return ""
		}
		name := a.Name
		if files.Len() == 0 {
			name = url.QueryEscape(name)
		}
		for _, value := range a.Value {
			line += " " + option + shell(name+"="+oneWay(named(c.Modules, a.Name), value))
		}
	}
	return line + files.String() + " " + shell(address)
}

// curlAPI returns a command that submits a response over the API. The key is in a variable.
func curlAPI(c *formsvc.Campaign, api string) string {
	var answers []formsvc.Answer
	if c.Size() <= maxSnippet {
		answers = example(c)
	}
	body := `{"user":{"email":"ada@example.com","firstName":"Ada","lastName":"Lovelace"},"responses":` + formsvc.NewAnswers(answers...).JSON() + "}"
	return `curl -H "Authorization: Bearer $FORMSVC_KEY" -H 'Content-Type: application/json' \
  -d ` + shell(body) + ` \
  ` + shell(api+"/v1/campaigns/"+string(c.ID)+"/responses")
}

// shell quotes a text for a POSIX shell, if it must be.
func shell(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=,-"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
