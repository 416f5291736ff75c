package httpx

import (
	"bytes"
	"encoding/csv"
	"slices"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// B10: text that a spreadsheet might run is escaped by an apostrophe, wherever it stands in the table. Nothing else changes, and
// encoding/csv reads the table back.
func TestFormulasAreEscaped(t *testing.T) {
	for text, want := range map[string]string{
		"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t'=1", "\rx": "'\rx", "\nx": "'\nx",
		"＝1": "'＝1", "＋1": "'＋1", "－1": "'－1", "＠x": "'＠x", " =1": "' =1", "'=1": "''=1", "' '=1": "'' '=1", "''-1": "'''-1",
		"": "", "'": "'", " ": " ", "1": "1", "a=1": "a=1", "'quoted'": "'quoted'", "1-2": "1-2", "é": "é", "ad＝": "ad＝",
		"a;=1": "a;'=1", "a\t+1": "a\t'+1", "a\n@x": "a\n'@x", "a; =1": "a;' =1", `"=1`: `'"=1`, `a;"=1`: `a;'"=1`,
		"a;\u00a0=1": "a;'\u00a0=1", "a;;＝1": "a;;'＝1", "=1;=2": "'=1;'=2", "a;'=1": "a;''=1", "a;b=1": "a;b=1", "a;": "a;",
		"a,b": "a,b", "\"a\"\nb": "\"a\"\nb",
	} {
		table := chosenTable(append(fixedColumns(), answerPrefix+text, answerPrefix+"b"))
		r := formsvc.Response{Status: text, User: formsvc.User{FirstName: text}, Answers: formsvc.NewAnswers(
			formsvc.Answer{Name: text, Value: []string{text}}, formsvc.Answer{Name: "b", Value: []string{"x", text}})}
		if err := table.set(&r); err != nil {
			t.Fatal(err)
		}
		b := appendRecord(appendRecord(nil, table.header), table.cells)
		got, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
		if err != nil || len(got) != 2 {
			t.Fatalf("%q: %q, %v", text, b, err)
		}
		cells := []string{got[0][9], got[1][2], got[1][4], got[1][9], got[1][10]}
		if !slices.Equal(cells, []string{want, want, want, want, "x; " + want}) {
			t.Errorf("%q: %q, want %q", text, cells, want)
		}
	}
}

// The kind of a question decides how its answer is written.
func TestCellsByQuestion(t *testing.T) {
	number, several := &formsvc.Module{Type: formsvc.NumberModule}, &formsvc.Module{Type: formsvc.ChoiceModule, Multiple: true}
	for _, row := range []struct {
		m      *formsvc.Module
		values []string
		want   string
	}{
		{number, []string{"-5"}, "-5"}, {number, []string{"-5", "-1e3"}, "-5; -1e3"}, {number, []string{"-5+1"}, "'-5+1"}, {number, []string{"+49"}, "'+49"},
		{&formsvc.Module{Type: formsvc.TextModule}, []string{"-5"}, "'-5"}, {nil, []string{"-5"}, "'-5"},
		{several, []string{"Me; myself", "I"}, `"Me; myself"; I`}, {several, []string{"Me", "myself; I"}, `Me; "myself; I"`}, {several, []string{"a; =1"}, `"a;' =1"`},
		{several, []string{`"=1`}, `'"""=1"`},
	} {
		if got := answerCell(row.m, row.values); got != row.want {
			t.Errorf("%q: %s, want %s", row.values, got, row.want)
		}
	}
}
