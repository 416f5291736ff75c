//go:build long

package intake

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// The page's script reads numbers as the server does: those that can be read in one way.
func TestScriptReadsNumbers(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("SKIPPED: no node here")
	}
	script, _ := os.ReadFile("assets/form.js")
	function := regexp.MustCompile(`(?s)const canonical = .*?\n};\n`).Find(script)
	var cases [][2]string // a text and a mark
	for _, sign := range []string{"", "-", "−", "+"} {
		for _, whole := range []string{"", "0", "007", "1", "12", "1234", "1.234", "1,234", "1 234", "1’234", "1.234.567", "1,234,567", "12,34,567", "1\u00a0234", "١٢٣٤", "۱۲", "１２"} {
			for _, fraction := range []string{"", ".", ",", ".5", ",5", "٫5", ".50", ",500", ".500", ".5000", ".0"} {
				for _, mark := range []string{".", ",", ""} {
					cases = append(cases, [2]string{sign + whole + fraction, mark})
				}
			}
		}
	}
	input, _ := json.Marshal(cases)
	const run = "console.log(JSON.stringify(JSON.parse(process.argv[1]).map(([s, mark]) => canonical(s, mark))))"
	out, _ := exec.CommandContext(t.Context(), "node", "-e", string(function)+run, string(input)).Output()
	var got []string
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(cases) {
		t.Fatalf("%v: %s", err, out)
	}
	number := regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)
	for i, c := range cases {
		if want, other := readNumber(c[0], texts{"decimal": c[1]}); other == "" && number.MatchString(want) && got[i] != want {
			t.Errorf("%q with the mark %q is %q, want %q", c[0], c[1], got[i], want)
		}
	}
}
