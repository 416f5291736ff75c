package formsvc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// A section has none of the members of a question, and each new member belongs to some types only.
func TestSectionsPatternsAndOther(t *testing.T) {
	w := newWorld(t)
	create := func(modules ...formsvc.Module) error {
		_, err := w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x", Modules: modules})
		return err
	}
	type module = formsvc.Module
	on := func(name, value string) *formsvc.Condition {
		return &formsvc.Condition{Module: name, Equals: []string{value}}
	}
	for _, c := range []struct {
		m    module
		want string // after /modules/3
	}{
		{module{Type: "section", Label: "Heading", Help: "Text", Page: true, ShowIf: on("size", "M")}, ""},
		{module{Type: "section", Required: true}, "/required not_applicable"},
		{module{Type: "section", Default: []string{"x"}}, "/default not_applicable"},
		{module{Type: "section", Options: []string{"x"}}, "/options not_applicable"},
		{module{Type: "section", Pattern: "x"}, "/pattern not_applicable"},
		{module{Type: "section", Other: true}, "/other not_applicable"},
		{module{Page: true}, "/page not_applicable"},
		{module{ShowIf: on("part", "x")}, "/showIf/module unknown_module"},
		{module{ShowIf: on("size", "own")}, "/showIf/equals/0 impossible"},
		{module{ShowIf: on("code", "AB1")}, ""},
		{module{ShowIf: on("code", "AB1x")}, "/showIf/equals/0 impossible"},
		{module{Pattern: strings.Repeat("ü", 500), PatternHelp: strings.Repeat("ü", 500)}, ""},
		{module{Pattern: strings.Repeat("a", 501)}, "/pattern too_long"},
		{module{Pattern: "a", PatternHelp: strings.Repeat("a", 501)}, "/patternHelp too_long"},
		{module{PatternHelp: "Digits"}, "/patternHelp not_applicable"},
		{module{Type: "longtext", Pattern: "(?s).{1,500}"}, ""},
		{module{Type: "number", Pattern: "1"}, "/pattern not_applicable"},
		{module{Type: "choice", Options: []string{"1"}, Pattern: "1"}, "/pattern not_applicable"},
		{module{Pattern: "(a"}, "/pattern invalid_value"},
		{module{Pattern: "a)|(b"}, "/pattern invalid_value"},
		{module{Pattern: "(abc){400}"}, "/pattern invalid_value"},
		{module{Pattern: "((a?){30}b){30}"}, "/pattern invalid_value"},
		{module{Pattern: "\x00"}, "/pattern nul_not_allowed"},
		{module{Pattern: "[0-9]+", Default: []string{"12"}}, ""},
		{module{Pattern: "[0-9]+", Default: []string{"12a"}}, "/default/0 pattern_mismatch"},
		{module{Type: "choice", Options: []string{"1"}, Other: true, MaxLength: 5, Default: []string{"own"}}, ""},
		{module{Type: "choice", Options: []string{"1"}, MaxLength: 5}, "/maxLength not_applicable"},
		{module{Type: "choice", Options: []string{"1"}, Other: true, Multiple: true, Default: []string{"a", "b"}}, "/default/1 too_many"},
	} {
		var want []string
		if c.want != "" {
			want = []string{"/modules/3" + c.want}
		}
		c.m.Name = "a"
		wantFaults(t, create(
			module{Name: "size", Type: "choice", Options: []string{"S", "M"}, Other: true}, module{Name: "part", Type: "section"}, module{Name: "code", Pattern: "[A-Z]{2}[0-9]"}, c.m,
		), want...)
	}
	wantFaults(t, create(module{Name: "a"}, module{Name: "a", Type: "section"}), "/modules/1/name duplicate")
	wantFaults(t, create(module{Name: "email", Type: "section"}), "/modules/0/name reserved")
	many := make([]module, 101)
	for i := range many {
		many[i] = module{Name: fmt.Sprint(i), Pattern: "x"}
	}
	wantFaults(t, create(many[:100]...))
	wantFaults(t, create(many...), "/modules/100/pattern too_many")
}

// A pattern matches whole values, at the cost of few steps. The API has the owner's words.
func TestPatterns(t *testing.T) {
	for _, c := range []struct{ pattern, good, bad string }{
		{"[A-Z]{2}", "AB", "ABC aAB ab AB\n \nAB"},
		{"a|ab|abc", "a ab abc", "abcd xab"},
		{"^a$|b", "a b", "ab xb"},
		{`\Qa.b`, "a.b", "axb"},
		{`\pL+([ '-]\pL+)*`, "Ü-x", "1"},
	} {
		m := formsvc.Module{Pattern: c.pattern, PatternHelp: "As on the card"}
		for value := range strings.SplitSeq(c.good, " ") {
			if code, _ := m.Check(value); code != "" {
				t.Errorf("%s refuses %q", c.pattern, value)
			}
		}
		for value := range strings.SplitSeq(c.bad, " ") {
			if code, detail := m.Check(value); code != "pattern_mismatch" || detail != "As on the card" {
				t.Errorf("%s and %q: %q, %q", c.pattern, value, code, detail)
			}
		}
	}
	if code, detail := (&formsvc.Module{Pattern: "a"}).Check("b"); code != "pattern_mismatch" || detail != "must match the pattern a" {
		t.Errorf("without words: %q, %q", code, detail)
	}
	w := newWorld(t)
	c := w.campaign(formsvc.Module{Name: "a", Pattern: "(a?){300}b*", Multiple: true}, formsvc.Module{Name: "z", Type: "email", Pattern: ".*@example.com"})
	wantFaults(t, failure(w.submit(&c, answer("a", "", "aab"), answer("z", "ada@example.com"))))
	wantFaults(t, failure(w.submit(&c, answer("a", "ba"), answer("z", "ada@example.org"))), "/responses/a/value/0 pattern_mismatch", "/responses/z/value/0 pattern_mismatch")
	wantFaults(t, failure(w.submit(&c, answer("a", strings.Repeat("b", 40_000), strings.Repeat("b", 40_000)))), "/responses/a/value/1 too_long")
}

// A choice with other takes one value of one's own, without spaces around it, and never one that reads as an option.
func TestOtherAnswers(t *testing.T) {
	w := newWorld(t)
	labels := map[string]string{"r": "Red", "g": " Green "}
	c := w.campaign(
		formsvc.Module{Name: "part", Type: "section"},
		formsvc.Module{Name: "one", Type: "choice", Options: []string{"r", "g", "Blue"}, Labels: labels, Other: true, Required: true, MaxLength: 5},
		formsvc.Module{Name: "many", Type: "choice", Options: []string{"r", "g", "a long option"}, Labels: labels, Other: true, Multiple: true},
		formsvc.Module{Name: "why", ShowIf: &formsvc.Condition{Module: "one", Equals: []string{"r"}}},
	)
	for _, test := range []struct {
		sent, stored []string
	}{
		{[]string{"r"}, []string{"r"}},
		{[]string{"Red"}, []string{"r"}},
		{[]string{" Green"}, []string{"g"}},
		{[]string{"red"}, []string{"red"}},
		{[]string{" Pink\n"}, []string{"Pink"}},
	} {
		r := w.submitted(&c, answer("one", test.sent...), answer("many", append([]string{"a long option", "g"}, test.sent...)...))
		if values, _ := r.Answers.Get("one"); !slices.Equal(values, test.stored) {
			t.Errorf("%q is stored as %q", test.sent, values)
		}
		patch := formsvc.ResponsePatch{Answers: []formsvc.AnswerPatch{{Answer: answer("one", test.sent...)}}}
		changed, err := w.svc.Responses.Update(w.ctx, r.Key(), patch)
		if noError(t, err); changed.Version != r.Version {
			t.Errorf("%q again changes %s", test.sent, changed.Answers.JSON())
		}
	}
	for _, test := range []struct {
		answers []formsvc.Answer
		want    []string
	}{
		{[]formsvc.Answer{answer("one", "Red"), answer("why", "x")}, nil},
		{[]formsvc.Answer{answer("one", "Pink"), answer("why", "x")}, []string{"/responses/why hidden"}},
		{[]formsvc.Answer{answer("one", " ")}, []string{"/responses/one/value/0 unknown_option", "/responses/one required"}},
		{[]formsvc.Answer{answer("one", "Purple")}, []string{"/responses/one/value/0 too_long"}},
		{[]formsvc.Answer{answer("one", "r", "Pink")}, []string{"/responses/one/value too_many"}},
		{[]formsvc.Answer{answer("one", "r"), answer("many", "x", "x ", "r")}, nil},
		{[]formsvc.Answer{answer("one", "r"), answer("many", "x", "r", "y", "z")}, []string{"/responses/many/value too_many"}},
		{[]formsvc.Answer{answer("part", "x"), answer("one", "r")}, []string{"/responses/part unknown_module"}},
		{[]formsvc.Answer{answer("part"), answer("one", "r")}, []string{"/responses/part unknown_module"}},
	} {
		wantFaults(t, failure(w.submit(&c, test.answers...)), test.want...)
	}
}
