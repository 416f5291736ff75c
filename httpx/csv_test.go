package httpx

import (
	"encoding/csv"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/formsvc/toolkit/formsvc"
)

// B10: text that a spreadsheet might run is escaped by an apostrophe, which can be removed again.
func TestFormulasAreEscaped(t *testing.T) {
	for text, want := range map[string]string{
		"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t'=1", "\rx": "'\rx", "\nx": "'\nx",
		"＝1": "'＝1", "＋1": "'＋1", "－1": "'－1", "＠x": "'＠x", " =1": "' =1", "'=1": "''=1", "' '=1": "'' '=1", "''-1": "'''-1",
		"": "", "'": "'", " ": " ", "1": "1", "a=1": "a=1", "'quoted'": "'quoted'", "1-2": "1-2", "é": "é", "ad＝": "ad＝",
		"a;=1": "a;'=1", "a\t+1": "a\t'+1", "a\n@x": "a\n'@x", "a\r\n-1": "a\r\n'-1", "a; =1": "a;' =1", `"=1`: `'"=1`, `a;"=1`: `a;'"=1`,
		"a;\u00a0=1": "a;'\u00a0=1", "a;;＝1": "a;;'＝1", "=1;=2": "'=1;'=2", "a;'=1": "a;''=1", "a;b=1": "a;b=1", "a;": "a;",
	} {
		if got := defused(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestEscapedFormulasRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := cellTexts().Draw(t, "text")
		if got := plain(defused(text)); got != text {
			t.Fatalf("%q becomes %q, and that %q", text, defused(text), got)
		}
	})
}

// plain undoes defused as the documentation says.
func plain(cell string) string {
	var b strings.Builder
	for first := true; ; first = false {
		rest := strings.TrimLeft(cell, " '\"\u00a0")
		starts := "=+-@＝＋－＠"
		if first {
			starts += "\t\r\n"
		}
		if strings.HasPrefix(cell, "'") && rest != "" && strings.Contains(starts, string([]rune(rest)[0])) {
			cell = cell[1:]
		}
		at := strings.IndexAny(cell, ";\t\r\n")
		if at < 0 {
			return b.String() + cell
		}
		b.WriteString(cell[:at+1])
		cell = cell[at+1:]
	}
}

func cellTexts() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.SampledFrom([]rune("a,;\"'\r\n\t =+-@＝＋－＠é\U0001F600")), 0, 8, -1)
}

// Every table is read back unchanged by encoding/csv.
func TestCSVRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.OneOf(cellTexts(), rapid.SampledFrom([]string{
			"uuid", "status", "responses.status", "responses.responses.status", "responses.", "=a", "'=a", "''=a",
		})), 0, 6, rapid.ID[string]).Draw(t, "names")
		table := newTable(names)
		var b []byte
		b = table.appendHeader(b)
		want := [][]string{table.header}
		if clean := slices.Compact(slices.Sorted(slices.Values(table.header))); len(clean) != len(table.header) {
			t.Fatalf("columns %q", table.header)
		}
		for range rapid.IntRange(0, 3).Draw(t, "rows") {
			r := formsvc.Response{ID: "id", Reference: "R", Status: "s", User: formsvc.User{Email: cellTexts().Draw(t, "email")}}
			row := append([]string{"id", "R", "s", defused(r.User.Email), "", "", "", "", ""}, make([]string, len(names))...)
			var answers []formsvc.Answer
			for i, name := range names {
				if rapid.Bool().Draw(t, "answered") {
					value := cellTexts().Draw(t, "value")
					answers = append(answers, formsvc.Answer{Name: name, Value: []string{value}})
					row[len(fixedColumns())+i] = defused(value)
				}
			}
			r.Answers = formsvc.NewAnswers(answers...)
			if err := table.set(&r); err != nil {
				t.Fatal(err)
			}
			for i := range table.cells {
				b = table.appendCell(b, i)
			}
			want = append(want, row)
		}
		in := csv.NewReader(strings.NewReader(string(b)))
		for _, row := range want {
			got, err := in.Read()
			for i := range row { // encoding/csv changes line breaks within fields like this
				row[i] = strings.ReplaceAll(row[i], "\r\n", "\n")
			}
			if err != nil || !slices.Equal(got, row) {
				t.Fatalf("%q, %v; want %q in\n%s", got, err, row, b)
			}
		}
		if _, err := in.Read(); err != io.EOF {
			t.Fatalf("%v in\n%s", err, b)
		}
	})
}
