package httpx_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// B10: text that a spreadsheet might run is escaped by an apostrophe, wherever it stands in the table. Nothing else changes, and
// encoding/csv reads the table back.
func TestFormulasAreEscaped(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	cells := map[string]string{
		"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t'=1", "\rx": "'\rx", "\nx": "'\nx",
		"＝1": "'＝1", "＋1": "'＋1", "－1": "'－1", "＠x": "'＠x", " =1": "' =1", "'=1": "''=1", "' '=1": "'' '=1", "''-1": "'''-1",
		"": "", "'": "'", " ": " ", "1": "1", "a=1": "a=1", "'quoted'": "'quoted'", "1-2": "1-2", "é": "é", "ad＝": "ad＝",
		"a;=1": "a;'=1", "a\t+1": "a\t'+1", "a\n@x": "a\n'@x", "a; =1": "a;' =1", `"=1`: `'"=1`, `a;"=1`: `a;'"=1`,
		"a;\u00a0=1": "a;'\u00a0=1", "a;;＝1": "a;;'＝1", "=1;=2": "'=1;'=2", "a;'=1": "a;''=1", "a;b=1": "a;b=1", "a;": "a;",
		"a,b": "a,b", "\"a\"\nb": "\"a\"\nb", "uuid": "uuid", "responses.uuid": "responses.uuid",
	}
	var texts []string
	for text := range cells {
		texts = append(texts, text)
		value, _ := json.Marshal(text)
		name := string(value)
		if text == "" {
			name = `"empty"`
		}
		answers := fmt.Sprintf(`{%s:{"value":[%s]}}`, name, value)
		made := w.respond(campaign, "ada@example.com", answers)
		w.do("PATCH", campaign+"/responses/"+made.text("uuid"), fmt.Sprintf(`{"user":{"firstName":%s}}`, value)).is(200, "")
	}
	table, err := csv.NewReader(strings.NewReader(w.do("GET", campaign+"/responses.csv?order=asc", "").is(200, "").body)).ReadAll()
	if err != nil || len(table) != len(texts)+1 {
		t.Fatalf("%d rows, %v", len(table), err)
	}
	head := table[0]
	if slices.Sort(head); len(slices.Compact(head)) != 9+len(texts) {
		t.Errorf("columns %q", table[0])
	}
	for i, text := range texts {
		want := cells[text]
		row := slices.DeleteFunc(table[i+1], func(cell string) bool { return cell == "" })
		n := 0
		for _, cell := range row {
			if cell == want {
				n++
			}
		}
		if n != 2 && want != "" {
			t.Errorf("%q should be %q in two cells of %q", text, want, row)
		}
	}
	for _, name := range head {
		if strings.ContainsAny(name[:1], "=+-@\t\r\n") {
			t.Errorf("the column %q is a formula", name)
		}
	}
}
