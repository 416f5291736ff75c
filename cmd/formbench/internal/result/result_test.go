package result

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// sample returns two rounds of two systems.
func sample() (cells Cells) {
	for round := 1; round <= 2; round++ {
		for i, system := range []string{"formsvc", "PocketBase FULL, batch of three"} {
			c := Cell{Key: Key{Part: "peers-create", What: "500 events/s_x", Store: "sqlite", System: system, Conns: 64, Size: 1000}, Round: round}
			c.Add("requests/s", float64(round*2000-i*1000))
			c.Add("p99-ms", 0.25)
			c.Add("peak-MB", 41.9)
			c.Add("errors", 0)
			cells = append(cells, c)
		}
	}
	return cells
}

// TestFile checks that written cells can be read back, also by other readers of the format.
func TestFile(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	w := NewWriter(&text, "cpu", "X", "go", "go1.26")
	want := sample()
	for i := range want {
		if err := w.Write(&want[i]); err != nil {
			t.Fatal(err)
		}
	}
	line := "BenchmarkPeers-create/what=500+events%2Fs_x/store=sqlite/conns=64/size=1000/system=formsvc 1 2000 requests/s 0.25 p99-ms 41.9 peak-MB 0 errors\n"
	if !strings.Contains(text.String(), line) || !strings.Contains(text.String(), "cpu: X\n") {
		t.Errorf("got %s", &text)
	}
	got, from, err := Read(&text, "file")
	if err != nil || from != "X, go1.26" || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v from %q, %v", got, from, err)
	}
	for _, bad := range []string{"", "{}", "BenchmarkX 1\n", "BenchmarkX/conns=many 1 2 ns\n"} {
		if cells, _, err := Read(strings.NewReader(bad), "file"); err == nil {
			t.Errorf("%q is %+v", bad, cells)
		}
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	if s := NewSpread(3, 1, 2); *s != (Spread{2, 1, 3, 3}) || s.String() != "2.00 (1.00–3.00)" {
		t.Errorf("got %+v, %s", s, s)
	}
	if s := NewSpread(1, 2); s.Median != 1.5 {
		t.Errorf("the median of two is %v", s.Median)
	}
	cells := sample()
	if s := cells.Over(cells[0].Key, cells[1].Key, "requests/s"); s.Lowest != 4000.0/3000 || s.Highest != 2 || s.Rounds != 2 {
		t.Errorf("within rounds it is %+v", s)
	}
	if s := cells.Over(cells[0].Key, cells[0].By("nobody"), "requests/s"); s != nil || s.String() != "" {
		t.Errorf("over nobody it is %+v", s)
	}
	if s := cells.Most("requests/s", func(*Cell) bool { return true }); s.Median != 4000 {
		t.Errorf("got %+v", s)
	}
	for x, want := range map[float64]string{0: "0", 0.0104: "0.010", 0.5: "0.500", 1.004: "1.00", 23.44: "23.4", 1234.5: "1,234", -1234567: "-1,234,567", -9.5: "-9.50"} {
		if got := Spell(x); got != want {
			t.Errorf("%v is spelled %s, want %s", x, got, want)
		}
	}
}

func TestTables(t *testing.T) {
	t.Parallel()
	cells := sample()
	groups := cells.Group()
	if len(groups) != 1 || groups[0].Title() != "peers-create, sqlite" {
		t.Fatalf("got %+v", groups)
	}
	var text strings.Builder
	if err := WriteTable(&text, groups[0].Table()); err != nil {
		t.Fatal(err)
	}
	if err := WriteTable(&text, groups[0].Ratios("formsvc", "requests/s", "p99-ms", "none")); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"3,000 (2,000–4,000)", "| 0.250 (0.250–0.250) | 41.9 (41.9–41.9) |", "formsvc over", "1.67 (1.33–2.00) | 1.00 (1.00–1.00) |"} {
		if !strings.Contains(text.String(), field) {
			t.Errorf("%s is missing", field)
		}
	}
	if strings.Contains(text.String(), "errors") || strings.Contains(text.String(), "none") || t.Failed() {
		t.Errorf("got\n%s", &text)
	}
}

// TestChart checks that charts have the numbers, and that the same cells give the same bytes.
func TestChart(t *testing.T) {
	t.Parallel()
	var charts [2][]byte
	for i := range charts {
		dir := filepath.Join(t.TempDir(), "charts")
		names, err := sample().WriteCharts(dir)
		if err != nil || len(names) != 1 || names[0] != "peers-create-sqlite.svg" {
			t.Fatalf("got %q, %v", names, err)
		}
		if charts[i], err = os.ReadFile(filepath.Join(dir, names[0])); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"<svg", ">3,000<", ">0.250<", "more is better", "batch of three"} {
		if !bytes.Contains(charts[0], []byte(want)) {
			t.Errorf("%s is missing", want)
		}
	}
	if !bytes.Equal(charts[0], charts[1]) {
		t.Error("the same cells give other bytes")
	}
	if name, err := sample()[:0].WriteCharts(t.TempDir()); err != nil || len(name) != 0 {
		t.Errorf("nothing is drawn as %q, %v", name, err)
	}
}
