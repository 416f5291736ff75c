package formsvc_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// A search finds what people read, whatever its case and accents.
func TestSearch(t *testing.T) {
	auckland := must(time.LoadLocation("Pacific/Auckland"))
	modules := []formsvc.Module{
		{Name: "news", Type: formsvc.BooleanModule}, {Name: "text", Type: formsvc.TextModule},
		{Name: "who", Type: formsvc.ChoiceModule, Multiple: true, Options: []string{"Me; myself", "I"}},
	}
	r := formsvc.Response{
		Reference: "R-1", Status: "validated", User: formsvc.User{FirstName: "Jürgen", LastName: "Müller", Email: "jm@example.com"},
		CreatedAt: time.Date(2026, 11, 28, 12, 30, 0, 0, time.UTC),
	}
	for _, row := range []struct {
		text, search string
		zone         *time.Location
		found        bool
	}{
		{"", "muller", nil, true}, {"", "MÜLLER", nil, true}, {"", "mu\u0308ller", nil, true}, {"", "jurgen mull", nil, true}, {"", "mueller", nil, false},
		{"Straße", "STRASSE", nil, true}, {"STRASSE", "straße", nil, true}, {"Søren Łódź", "soren lodz", nil, true}, {"cœur", "COEUR", nil, true},
		{"Ὀδυσσεύς", "οδυσσευσ", nil, true}, {"ёлка й", "елка и", nil, true}, {"İstanbul Irmak", "istanbul ırmak", nil, true}, {"ﬁne １２", "fine 12", nil, true},
		{"مُحَمَّد", "محمد", nil, true}, {"が", "か", nil, false}, {"कि", "क", nil, true}, {"12345.5", "345.5", nil, true}, {"−5", "-5", nil, false},
		{"", "yes", nil, true}, {"", "true", nil, true}, {"", "no", nil, false}, {"", "Me; myself", nil, true}, {"", "me; myself\"; i", nil, true},
		{"", "validated", nil, false}, {"", "valid", auckland, true}, {"", "29 nov", auckland, true}, {"", "29 Nov 2026, 01:30", auckland, true},
		{"", "2026-11-29", auckland, true}, {"", "28 Nov", auckland, false}, {"", "29 Nov", nil, false}, {"", "2026", auckland, false}, {"", "28 Nov", time.UTC, true},
	} {
		r.Answers = formsvc.NewAnswers(
			formsvc.Answer{Name: "news", Value: []string{"true"}}, formsvc.Answer{Name: "text", Value: []string{row.text}},
			formsvc.Answer{Name: "who", Value: []string{"Me; myself", "I"}},
		)
		if found := formsvc.NewSearch(row.search, modules, row.zone).Finds(&r); found != row.found {
			t.Errorf("%q in %q: %v", row.search, row.text, found)
		}
	}
	if !r.Contains("MULLER") || r.Contains("yes") {
		t.Error("Contains")
	}
}

// Conditions compare numbers and days by value, choices exactly, and texts as a search does. Those that can't be compared fail.
func TestAnswerFilter(t *testing.T) {
	modules := []formsvc.Module{
		{Name: "n", Type: formsvc.NumberModule}, {Name: "d", Type: formsvc.DateModule}, {Name: "t"}, {Name: "f", Type: formsvc.FileModule},
		{Name: "c", Type: formsvc.ChoiceModule, Options: []string{"a", "b"}},
	}
	type filter = formsvc.AnswerFilter
	for _, row := range []struct {
		name, value string
		filter      filter
		want        string // or the error
	}{
		{"n", "1e1", filter{Any: []string{"2", "10.0"}}, "found"}, {"n", "9", filter{From: "10"}, ""}, {"n", "-5", filter{From: "-10", To: "0"}, "found"},
		{"n", "12345678901234567890", filter{To: "12345678901234567889"}, ""}, {"n", "many", filter{From: "1"}, ""}, {"n", "many", filter{Any: []string{"1"}}, ""},
		{"d", "2026-05-31", filter{From: "2026-05-31", To: "2026-05-31"}, "found"}, {"d", "31 May", filter{To: "2099-01-01"}, ""},
		{"t", "Zoë", filter{Any: []string{"x", "ZO"}}, "found"}, {"t", "", filter{}, "found"}, {"none", "Zoë", filter{Any: []string{"zoe"}}, "found"}, {"none", "5", filter{From: "1"}, ""},
		{"c", "a", filter{Any: []string{"A"}}, ""}, {"c", "a", filter{Any: []string{"b", "a"}}, "found"}, {"c", "old", filter{Any: []string{"old"}}, "found"},
		{"n", "1", filter{From: "x", Any: []string{"y"}}, "/answerFrom invalid_number /answer invalid_number"}, {"n", "1", filter{From: "2", To: "1"}, "/answerTo out_of_range"},
		{"d", "", filter{To: "1 May"}, "/answerTo invalid_date"}, {"t", "", filter{From: "1"}, "/answerFrom not_applicable"}, {"f", "", filter{Any: []string{"x"}}, "/answer not_applicable"},
	} {
		r := formsvc.Response{Answers: formsvc.NewAnswers(formsvc.Answer{Name: "other", Value: []string{"1"}}, formsvc.Answer{Name: row.name, Value: []string{row.value}})}
		search, got := formsvc.NewSearch("", modules, nil), ""
		if invalid, ok := errors.AsType[*formsvc.ValidationError](search.Where(row.name, row.filter)); ok {
			for _, f := range invalid.Fields {
				got += " " + f.Pointer + " " + f.Code
			}
		} else if search.Finds(&r) {
			got = "found"
		}
		equal(t, strings.TrimSpace(got), row.want, "%s %q with %+v: %q", row.name, row.value, row.filter)
	}
}

// Lists of values that differ are joined differently.
func TestJoin(t *testing.T) {
	several := &formsvc.Module{Type: formsvc.ChoiceModule, Multiple: true}
	seen := map[string][]string{}
	for _, values := range [][]string{
		{"Me; myself", "I"}, {"Me", "myself; I"}, {"Me", "myself", "I"}, {"Me; myself; I"}, {`"Me`, `myself", "I`}, {`"Me; myself"`, "I"}, {`Me"; "myself`, "I"}, {`"Me"; "myself`, "I"},
	} {
		text := several.ShownValues(values)
		if seen[text] != nil {
			t.Errorf("%q and %q are both %s", seen[text], values, text)
		}
		seen[text] = values
	}
	for _, one := range []*formsvc.Module{nil, {Type: formsvc.TextModule}} {
		equal(t, one.ShownValues([]string{"one; two"}), "one; two", "an only text is %s")
	}
}
