package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A mark is an element of a chart.
type mark struct {
	name  string
	attrs map[string]string
	text  string
}

func (m *mark) number(t *testing.T, attr string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(m.attrs[attr], 64)
	if err != nil {
		t.Fatalf("%s of %+v: %v", attr, m, err)
	}
	return x
}

// marks reads a chart.
func marks(t *testing.T, chart []byte) (list []mark) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(chart))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, chart)
		}
		switch x := token.(type) {
		case xml.StartElement:
			m := mark{name: x.Name.Local, attrs: make(map[string]string)}
			for _, a := range x.Attr {
				m.attrs[a.Name.Local] = a.Value
			}
			list = append(list, m)
		case xml.CharData:
			if len(list) > 0 {
				list[len(list)-1].text += strings.TrimSpace(string(x))
			}
		}
	}
}

func values(rounds ...float64) *spread {
	s := newSpread(rounds)
	return &s
}

func sampleSheet() sheet {
	return sheet{
		name: "sample", title: `This & that <b>"`, note: strings.Repeat("a long note ", 20), source: "a machine",
		columns: []sheetColumn{{"requests/s", 0, moreIsBetter}, {"p50 ms", 2, notDrawn}, {"p99 ms", 2, lessIsBetter}},
		rows: []sheetRow{
			{"1 connection", "ceiling", ceilingSystem, []*spread{values(40_000, 30_000, 50_000), nil, values(1)}},
			{"64 connections", "formsvc", groupSystem, []*spread{values(20_000), values(2), values(2)}},
			{"1 connection", "a peer with a long name, that is told", "", []*spread{values(10_000), nil}},
		},
	}
}

// TestChart makes sure that what is drawn is what was measured, and where it can
// be seen.
func TestChart(t *testing.T) {
	t.Parallel()
	s := sampleSheet()
	chart := s.chart()
	if !bytes.Equal(chart, s.chart()) {
		t.Error("the same sheet gives other bytes")
	}
	all := marks(t, chart)
	var texts []string
	widths := make(map[string][]float64) // of bars, by colour
	height := all[0].number(t, "height")
	for _, m := range all {
		switch m.name {
		case "rect":
			x, width := m.number(t, "x"), m.number(t, "width")
			if x+width > chartWidth || m.number(t, "y")+m.number(t, "height") > height {
				t.Errorf("%+v is not on the paper", m)
			}
			widths[m.attrs["fill"]] = append(widths[m.attrs["fill"]], width)
		case "text":
			left := m.number(t, "x")
			right := left + textWidth(m.text, valueSize)
			switch m.attrs["class"] {
			case "label":
				left, right = left-textWidth(m.text, labelSize), left
			case "tick":
				right = left
			}
			if left < 0 || right > chartWidth || m.number(t, "y") > height {
				t.Errorf("%q is not on the paper: from %g to %g", m.text, left, right)
			}
			texts = append(texts, m.text)
		}
	}
	for _, want := range []string{s.title, "requests/s", "more is better", "p99 ms", "less is better", "40,000", "20,000", "1.00", "ceiling"} {
		if !slices.Contains(texts, want) {
			t.Errorf("%q is not among %q", want, texts)
		}
	}
	if slices.Contains(texts, "p50 ms") {
		t.Error("a column is drawn that is for the table only")
	}
	ours, limit, peer := widths[ourColour], widths[limitColour], widths[peerColour]
	if len(ours) != 2 || len(limit) != 2 || len(peer) != 1 || len(widths[paperColour]) != 1 {
		t.Fatalf("got bars %v", widths)
	}
	for _, pair := range [][2]float64{{limit[0], 2 * ours[0]}, {ours[0], 2 * peer[0]}, {ours[1], 2 * limit[1]}} {
		if math.Abs(pair[0]-pair[1]) > 0.3 {
			t.Errorf("bars have the wrong lengths: %v", widths)
		}
	}
	ranged := slices.IndexFunc(all, func(m mark) bool { return m.name == "line" && m.attrs["stroke"] == inkColour })
	length := all[ranged].number(t, "x2") - all[ranged].number(t, "x1")
	if math.Abs(length-ours[0]) > 0.3 {
		t.Errorf("a range of 20,000 is %g long, a bar of that %g", length, ours[0])
	}
}

func TestGathered(t *testing.T) {
	t.Parallel()
	s := sampleSheet()
	var got []string
	for _, r := range s.gathered() {
		got = append(got, r.group+" "+r.label[:1])
	}
	if want := []string{"1 connection c", "1 connection a", "64 connections f"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	table := s.table()
	want := [][]string{
		{"", "", "requests/s", "p50 ms", "p99 ms"},
		{"1 connection", "ceiling", "40,000 (30,000–50,000)", "", "1.00"},
		{"", "a peer with a long name, that is told", "10,000", "", ""},
		{"64 connections", "formsvc", "20,000", "2.00", "2.00"},
	}
	if !slices.EqualFunc(table, want, slices.Equal) {
		t.Errorf("got %q", table)
	}
}

func TestJoined(t *testing.T) {
	t.Parallel()
	a, b := sampleSheet(), sampleSheet()
	if _, err := joined([]sheet{a, b}); err == nil || !strings.Contains(err.Error(), "1 connection, ceiling") {
		t.Errorf("the same row twice: %v", err)
	}
	b.rows, b.source = []sheetRow{{group: "8 connections", label: "ceiling"}}, "another machine"
	c := sheet{name: "else", rows: a.rows}
	list, err := joined([]sheet{a, c, b})
	if err != nil || len(list) != 2 || len(list[0].rows) != 4 || list[0].source != "a machine; another machine" || list[1].name != "else" {
		t.Errorf("got %+v, %v", list, err)
	}
	if len(a.rows) != 3 {
		t.Error("the first sheet was changed")
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{0: "0", 12: "12", 123: "123", 1234: "1,234", -1234567: "-1,234,567", -123: "-123"} {
		if got := decimal(x, 0); got != want {
			t.Errorf("%v is spelled %s, want %s", x, got, want)
		}
	}
	if got := decimal(1234.567, 2); got != "1,234.57" {
		t.Errorf("got %s", got)
	}
	for x, want := range map[float64]float64{-1: 0, 0: 0, 1: 1, 1.1: 2, 3: 5, 6: 10, 99: 100, 0.03: 0.05, 20_001: 50_000} {
		if got := roundStep(x); math.Abs(got-want) > 1e-12 {
			t.Errorf("the step for %v is %v, want %v", x, got, want)
		}
	}
	for x, want := range map[float64]string{0: "0", 0.5: "0.5", 15: "15", 2_500: "2.5k", 40_000: "40k"} {
		if got := tickText(x); got != want {
			t.Errorf("%v is %s, want %s", x, got, want)
		}
	}
	if lines := wrapped(strings.Repeat("word ", 100), labelSize); len(lines) < 3 || strings.Join(lines, " ")+" " != strings.Repeat("word ", 100) {
		t.Errorf("got %q", lines)
	}
}

// sampleResult has a cell of everything.
func sampleResult() *result {
	r := &result{Started: time.Date(2026, 11, 23, 1, 2, 3, 0, time.UTC), Machine: machine{CPUs: 2, Model: "X"}, Notes: []string{"noisy"}}
	for round := 1; round <= 2; round++ {
		for _, system := range []string{ceilingSystem, groupSystem} {
			figures := figures{PerSecond: 1_000 * float64(round), P99: 2, ServerMicros: 30, OtherMicros: 12}
			for _, what := range []string{createWhat, getWhat} {
				r.Cells = append(r.Cells, cell{What: what, Store: postgresStore, System: system, Conns: 64, Round: round, figures: figures})
			}
		}
		for _, what := range []string{steadyPart, backlogPart} {
			for _, system := range []string{groupSystem, riverSystem} {
				c := deliverCell{What: what, Store: sqliteStore, System: system, Round: round}
				c.PerSecond, c.Reference, c.Claim = 500, 50_000, 7
				r.Deliveries = append(r.Deliveries, c)
			}
		}
		for system, peak := range map[string]float64{minioSystem: 0, groupSystem: 20} {
			c := fileCell{What: uploadWhat, Place: s3Place, System: system, Round: round}
			c.PerSecond, c.PeakMB = 9, peak
			r.Files = append(r.Files, c)
		}
		r.Overloads = append(r.Overloads, overloadCell{What: eagerWhat, Place: databasePlace, System: groupSystem, Conns: 640, Round: round, Goodput: 8})
	}
	r.Peers.Requests = []cell{{What: getWhat, Store: sqliteStore, System: pocketSystem, Conns: 8, figures: figures{PerSecond: 77}}}
	r.Peers.Starts = []startCell{{System: pocketSystem, Ready: 14.5}}
	r.Peers.Ratios = []ratio{{Of: "formsvc/PocketBase requests/s", subject: subject{What: getWhat, Store: sqliteStore}, spread: *values(3, 5)}}
	r.Scale = []cell{{What: rareWhat, Store: sqliteStore, Conns: 1, Responses: 2_000_000, figures: figures{P50: 0.25}}}
	r.Ratios = ratios(r.Cells)
	r.Goals = []goal{goal{Text: "a goal", Store: sqliteStore, Bound: 1}.met(values(2)), {Text: "not measured"}}
	return r
}

func TestRender(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "run.json")
	text, err := json.Marshal(sampleResult())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	charts := filepath.Join(dir, "charts")
	var out, log bytes.Buffer
	if status := run(t.Context(), []string{"-render", file, "-chart", charts}, streams{nil, &out, &log}); status != 0 {
		t.Fatalf("exit status %d: %s", status, &log)
	}
	for _, want := range []string{
		"NOTE: run.json: noisy",
		"### Creating responses, Postgres\n\n![Creating responses, Postgres](" + filepath.ToSlash(charts) + "/create-postgres.svg)",
		"23 November 2026: 2 CPUs (X)",
		"|  |  | requests/s | p99 ms | CPU µs/request |\n|---|---|--:|--:|--:|\n" +
			"| 64 connections | ceiling | 1,500 (1,000–2,000) | 2.00 (2.00–2.00) | 30 (30–30) |\n" +
			"|  | formsvc | 1,500 (1,000–2,000) | 2.00 (2.00–2.00) | 42 (42–42) |\n",
		"| get one, 64 connections | ceiling |",
		"| SQLite | reference | 50,000 (50,000–50,000) |",
		" | minio-go | 9 (9–9) |  |\n",
		" | formsvc | 9 (9–9) | 20 (20–20) |\n",
		"| eager, 640 connections | formsvc | 8 (8–8) |",
		"| get one, 8 connections | PocketBase | 77 |",
		"| PocketBase | 14.5 |",
		"formsvc/PocketBase requests/s",
		"| status, rare, 1 connection | 2,000,000 responses | 0.250 |",
		"| a goal | SQLite | **missed** | 2.00 |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(out.String(), "not measured") || strings.Contains(out.String(), "backlog.svg") || t.Failed() {
		t.Errorf("got\n%s", &out)
	}
	want := []string{"create-postgres.svg", "files.svg", "overload-slow-database.svg", "peers-read.svg", "peers-start.svg", "read-postgres.svg", "steady.svg"}
	if got := names(t, charts); !slices.Equal(got, want) {
		t.Errorf("got the charts %q", got)
	}
	for _, args := range [][]string{{"-render", file + "," + file}, {"-render", filepath.Join(dir, "none")}, {"-render", filepath.Join(charts, want[0])}} {
		if status := run(t.Context(), append(args, "-chart", charts), streams{nil, io.Discard, io.Discard}); status != 1 {
			t.Errorf("%q: exit status %d", args, status)
		}
	}
}

// names returns those of the files in a directory.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// TestChartOfRun makes sure that a run draws what it measured.
func TestChartOfRun(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "charts")
	benchmark(t, "-stores", "sqlite", "-rounds", "1", "-conns", "2", "-systems", groupSystem, "-only", createPart, "-chart", dir)
	if got := names(t, dir); !slices.Equal(got, []string{"create-sqlite.svg"}) {
		t.Fatalf("got the charts %q", got)
	}
	chart, err := os.ReadFile(filepath.Join(dir, "create-sqlite.svg"))
	if err != nil {
		t.Fatal(err)
	}
	if all := marks(t, chart); !slices.ContainsFunc(all, func(m mark) bool { return m.attrs["class"] == "group" && m.text == "2 connections" }) {
		t.Errorf("got\n%s", chart)
	}
}
