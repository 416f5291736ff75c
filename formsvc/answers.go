package formsvc

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// An Answer is what a respondent entered for one module: an ordered list of values. An Answer
// without values was left empty on purpose.
type Answer struct {
	Name  string
	Value []string
}

// Answers holds the answers of a response in the order they were given, as the JSON text that
// stores keep and clients receive: {"name":{"value":["…"]},…}. The zero value has no answers.
// Answers is immutable.
type Answers struct{ text string }

// NewAnswers returns the given answers. It doesn't check names; services do.
func NewAnswers(list ...Answer) Answers {
	if len(list) == 0 {
		return Answers{}
	}
	size := 2
	for _, a := range list {
		size += len(a.Name) + 16
		for _, v := range a.Value {
			size += len(v) + 4
		}
	}
	b := append(make([]byte, 0, size), '{')
	for i, a := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, a.Name)
		b = append(b, `:{"value":`...)
		b = appendStrings(b, a.Value)
		b = append(b, '}')
	}
	return Answers{string(append(b, '}'))}
}

// StoredAnswers returns the answers of a stored JSON text. It doesn't check the text, which must
// come from [Answers.JSON].
func StoredAnswers(text string) Answers {
	if text == "{}" {
		return Answers{}
	}
	return Answers{text}
}

// JSON returns the answers as a JSON object.
func (a Answers) JSON() string {
	if a.text == "" {
		return "{}"
	}
	return a.text
}

// List returns the answers in their order. The caller owns the result.
func (a Answers) List() ([]Answer, error) {
	if a.text == "" {
		return nil, nil
	}
	var members map[string]struct {
		Value []string `json:"value"`
	}
	if err := json.Unmarshal([]byte(a.text), &members); err != nil {
		return nil, fmt.Errorf("formsvc: stored answers: %w", err)
	}
	list := make([]Answer, 0, len(members))
	for _, name := range memberOrder(a.text) {
		list = append(list, Answer{Name: name, Value: members[name].Value})
	}
	return list, nil
}

// Get returns the values of one module, and whether it was answered.
func (a Answers) Get(name string) ([]string, bool) {
	list, err := a.List()
	if err != nil {
		return nil, false
	}
	i := slices.IndexFunc(list, func(x Answer) bool { return x.Name == name })
	if i < 0 {
		return nil, false
	}
	return list[i].Value, true
}

// memberOrder returns the names of a JSON object's members in their order.
func memberOrder(object string) []string {
	var names []string
	depth, expectName := 0, false
	for i := 0; i < len(object); {
		switch c := object[i]; c {
		case '"':
			end := i + 1
			for object[end] != '"' {
				if object[end] == '\\' {
					end++
				}
				end++
			}
			if depth == 1 && expectName {
				var name string
				if json.Unmarshal([]byte(object[i:end+1]), &name) == nil {
					names = append(names, name)
				}
				expectName = false
			}
			i = end + 1
			continue
		case '{', '[':
			depth++
			expectName = depth == 1
		case '}', ']':
			depth--
		case ',':
			expectName = depth == 1
		}
		i++
	}
	return names
}

// maxAnswers limits the number of a response's answers; [MaxAnswersSize] limits their size.
const maxAnswers = 1_000

// badName reports whether no module can have that name.
func badName(name string) bool {
	return name == "" || CheckText(name) != nil || utf8.RuneCountInString(name) > maxModuleName
}

// checkSize notes answers that are larger than [MaxAnswersSize].
func (e *ValidationError) checkSize(a Answers) {
	if len(a.text) > MaxAnswersSize {
		e.add("/responses", "too_large", "must have at most %d bytes in all, as stored JSON", MaxAnswersSize)
	}
}

// checkNames notes what is wrong with answers whatever the campaign.
func (e *ValidationError) checkNames(answers []Answer) {
	if len(answers) > maxAnswers {
		e.add("/responses", "too_many", "must have at most %d members", maxAnswers)
		return
	}
	var seen map[string]bool
	if len(answers) > 8 {
		seen = make(map[string]bool, len(answers))
	}
	for i, a := range answers {
		if a.Name == "" {
			e.add("/responses/", "required", "a module name must not be empty")
		} else if len(a.Name) > maxModuleName && utf8.RuneCountInString(a.Name) > maxModuleName {
			// The name itself would make the pointer as long as the input.
			e.add("/responses", "too_long", "a module name must have at most %d characters", maxModuleName)
			continue
		}
		if code, detail := textFault(a.Name); code != "" {
			e.add("/responses", code, "a module name %s", detail)
			continue
		}
		duplicate := seen[a.Name]
		if seen == nil {
			duplicate = slices.ContainsFunc(answers[:i], func(b Answer) bool { return b.Name == a.Name })
		} else {
			seen[a.Name] = true
		}
		if duplicate {
			e.add("/responses/"+pointerEscape(a.Name), "duplicate", "is answered twice")
		}
		for n, value := range a.Value {
			if code, detail := textFault(value); code != "" {
				e.add(fmt.Sprintf("/responses/%s/value/%d", pointerEscape(a.Name), n), code, "%s", detail)
			}
		}
	}
}
