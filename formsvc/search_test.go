package formsvc_test

import (
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
