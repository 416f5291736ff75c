package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
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

func values(rounds ...float64) *stats.Spread {
	s := stats.NewSpread(rounds)
	return &s
}

func sampleSheet() Sheet {
	return Sheet{
		Name: "sample", Title: `This & that <b>"`, Note: strings.Repeat("a long note ", 20), Source: "a machine",
		columns: []Column{{"requests/s", 0, MoreIsBetter}, {"p50 ms", 2, NotDrawn}, {"p99 ms", 2, LessIsBetter}},
		Rows: []Row{
			{"1 connection", "ceiling", bench.CeilingSystem, []*stats.Spread{values(40_000, 30_000, 50_000), nil, values(1)}},
			{"64 connections", "formsvc", bench.APISystem, []*stats.Spread{values(20_000), values(2), values(2)}},
			{"1 connection", "a peer with a long name, that is told", "", []*stats.Spread{values(10_000), nil}},
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
	for _, want := range []string{s.Title, "requests/s", "more is better", "p99 ms", "less is better", "40,000", "20,000", "1.00", "ceiling"} {
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
		got = append(got, r.Group+" "+r.Label[:1])
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
	if _, err := Joined([]Sheet{a, b}); err == nil || !strings.Contains(err.Error(), "1 connection, ceiling") {
		t.Errorf("the same row twice: %v", err)
	}
	b.Rows, b.Source = []Row{{Group: "8 connections", Label: "ceiling"}}, "another machine"
	c := Sheet{Name: "else", Rows: a.Rows}
	list, err := Joined([]Sheet{a, c, b})
	if err != nil || len(list) != 2 || len(list[0].Rows) != 4 || list[0].Source != "a machine; another machine" || list[1].Name != "else" {
		t.Errorf("got %+v, %v", list, err)
	}
	if len(a.Rows) != 3 {
		t.Error("the first sheet was changed")
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
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
