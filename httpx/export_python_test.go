//go:build long

package httpx_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Python's CSV reader reads an export as it was meant.
func TestExportCSVInPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("python3 is not here")
		}
		t.Skip("no python3")
	}
	w := newWorld(t, openMemory(t), nil)
	campaign := w.campaign(plainCampaign)
	values := []string{"a\r\nb", "a\rb", "a\nb", `"`, `""`, `a"b`, ",", ";", " x ", "é", "😀", "", "'", "\t", "'=x", "=x"}
	for _, value := range values {
		text, _ := json.Marshal(value)
		w.respond(campaign, "ada@example.com", fmt.Sprintf(`{"m":{"value":[%s]}}`, text))
	}
	program := exec.Command(python, "-c", `import csv, io, json, sys
text = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", newline="")
print(json.dumps([row["m"] for row in csv.DictReader(text, strict=True)]))`)
	program.Stdin = strings.NewReader(w.do("GET", campaign+"/responses.csv?order=asc", "").is(200, "").body)
	out, err := program.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(values)
	for _, at := range []int{13, 14, 15} {
		want[at] = "'" + want[at]
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
