package console

import (
	"cmp"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Limits of a filter by answers.
const (
	askedAlways = 12  // questions that it shows unless they are chosen
	mostOptions = 100 // of a question; another one can be typed
)

// An asked is a question that the table is filtered by.
type asked struct {
	Label, ID      string
	Type           formsvc.ModuleType
	Options        []choice // of choices, yes/no questions and consent
	More           bool     // whether there are other ones
	Text, From, To string   // as typed
}

// readConditions adds the conditions on answers to a search, to the query of the export, and to the page. The page names invalid ones,
// which the search leaves out.
func (v *visit) readConditions(p *campaignPage, search *formsvc.Search, export url.Values) {
	query, modules := v.viewed(), slices.Clone(v.campaign.Questions())
	of := func(id string) func(formsvc.Module) bool {
		return func(m formsvc.Module) bool { return columnID(m.Name) == id }
	}
	for _, key := range slices.Sorted(maps.Keys(query)) {
		kind, id, ok := strings.Cut(key, ".")
		if ok && (kind == "a" || kind == "from" || kind == "to") && !slices.ContainsFunc(modules, of(id)) {
			modules = append(modules, formsvc.Module{Name: id, Label: id + " (removed)"})
		}
	}
	for i := range modules {
		m := &modules[i]
		q, f, words := readAsked(m, query)
		keys := []string{"a." + q.ID, "from." + q.ID, "to." + q.ID}
		given := len(f.Any) > 0 || f.From+f.To != ""
		switch {
		case m.Type == formsvc.FileModule:
			continue
		case given || len(v.campaign.Modules) <= askedAlways || v.query("ask") == q.ID:
			p.Asked = append(p.Asked, q)
		default:
			p.Unasked = append(p.Unasked, choice{Value: q.ID, Text: q.Label})
		}
		if !given {
			continue
		}
		p.Answered = true
		if invalid, ok := errors.AsType[*formsvc.ValidationError](search.Where(m.Name, f)); ok {
			v.wrong = map[string]string{"filter": q.Label + ": the value " + invalid.Fields[0].Detail + ". The filter leaves it out.", keys[0]: q.Label + " " + invalid.Fields[0].Detail + "."}
			continue
		}
		p.Terms = append(p.Terms, term{q.Label + " " + words, v.without(append(keys, "after")...)})
		for name, values := range map[string][]string{"answer": f.Any, "answerFrom": {f.From}, "answerTo": {f.To}} {
			if strings.Join(values, "") != "" {
				export[name+"["+m.Name+"]"] = values
			}
		}
	}
}

// readAsked reads the condition on the answers to a question, and describes it.
func readAsked(m *formsvc.Module, query url.Values) (q asked, f formsvc.AnswerFilter, words string) {
	id := columnID(m.Name)
	q = asked{Label: short(shownCell, cmp.Or(m.Label, m.Name)), ID: id, Type: m.Type}
	options, given := m.Choices(), slices.Clone(query["a."+id])
	switch {
	case m.Type.Ranged():
		options, given, q.From, q.To = nil, nil, strings.TrimSpace(query.Get("from."+id)), strings.TrimSpace(query.Get("to."+id))
		f.From, f.To = q.From, q.To
	case options == nil:
		q.Text = strings.TrimSpace(query.Get("a." + id))
		if q.Text != "" {
			f.Any = []string{q.Text}
		}
		return q, f, "contains “" + short(100, q.Text) + "”"
	}
	for _, option := range options {
		c := choice{Value: columnID(option), Text: m.Shown(option)}
		c.Chosen = slices.Contains(given, c.Value) || slices.Contains(given, c.Text)
		if given = slices.DeleteFunc(given, func(s string) bool { return s == c.Value || s == c.Text }); c.Chosen {
			f.Any = append(f.Any, option)
		}
		if q.More = len(q.Options) >= mostOptions; c.Chosen || !q.More {
			q.Options = append(q.Options, c)
		}
	}
	for _, old := range given { // a choice that was removed
		if old = strings.TrimSpace(old); old != "" {
			f.Any, q.Options = append(f.Any, old), append(q.Options, choice{Value: old, Text: old, Chosen: true})
		}
	}
	q.More = q.More || m.Other
	shown := make([]string, len(f.Any))
	for i, value := range f.Any {
		shown[i] = short(shownCell, m.Shown(value))
	}
	if len(shown) > 0 {
		return q, f, "is " + strings.Join(shown, " or ")
	}
	words = "from " + dayWords(f.From) + " to " + dayWords(f.To)
	if f.From == "" {
		words = "up to " + dayWords(f.To)
	}
	return q, f, strings.TrimSuffix(words, " to ")
}

// dayWords writes a day for people, or returns another text.
func dayWords(text string) string {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		text = day.Format("2 Jan 2006")
	}
	return short(shownCell, text)
}
