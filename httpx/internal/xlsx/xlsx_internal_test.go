package xlsx

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"
)

// opened returns what excelize reads. It fails if a part isn't XML.
func opened(t *testing.T, b []byte) *excelize.File {
	t.Helper()
	parts, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts.File {
		r, err := part.Open()
		for d := xml.NewDecoder(r); err == nil; {
			_, err = d.Token()
		}
		if err != io.EOF { //nolint:errorlint // of the decoder
			t.Errorf("%s: %v", part.Name, err)
		}
	}
	f, err := excelize.OpenReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// What a cell holds, as another program reads it.
func TestCells(t *testing.T) {
	auckland := time.FixedZone("", 13*60*60)
	text, number := excelize.CellTypeInlineString, excelize.CellTypeUnset
	long := strings.Repeat("😀", 16_383)
	for i, row := range []struct {
		cell Cell
		want string // as it is stored
		kind excelize.CellType
	}{
		{Cell{Text: `=cmd|' /C calc'!A0`}, `=cmd|' /C calc'!A0`, text}, {Cell{Text: "+49 30"}, "+49 30", text}, {Cell{Text: "-5"}, "-5", text},
		{Cell{Text: "@x\t a \n<&>\"'\r\n  "}, "@x\t a \n<&>\"'\r\n  ", text}, {Cell{Text: "00123"}, "00123", text}, {Cell{Text: "שלום 😀 \u202eabc"}, "שלום 😀 \u202eabc", text},
		{Cell{Text: "\x01\x1f\ufffe\uffff_x0041_x0042_"}, "\x01\x1f\ufffe\uffff_x0041_x0042_", text}, {Cell{Text: "_x00"}, "_x00", text},
		{Cell{Text: long + "x"}, long + "x", text}, {Cell{Text: long + "xy"}, strings.Repeat("😀", 16_333) + "… [truncated from 16385 characters]", text},
		{Number("-5"), "-5", number}, {Number("1.50"), "1.50", number}, {Number("0"), "0", number}, {Number("Inf"), "Inf", text}, {Number("00123"), "00123", text},
		{Number("0.000123456789012345"), "0.000123456789012345", number}, {Number("1e307"), "1e307", number},
		{Number("1e308"), "1e308", text}, {Number("1e999"), "1e999", text}, {Number("1e-310"), "1e-310", text},
		{Number("1e-999"), "1e-999", text}, {Number("123456789012345"), "123456789012345", number},
		{Number("1234567890123456"), "1234567890123456", text}, {Number("12345678901234.56"), "12345678901234.56", text},
		{Date("2026-11-29"), "46355", number}, {Date("1901-01-01"), "367", number}, {Date("1900-12-31"), "1900-12-31", text},
		{Date("soon"), "soon", text}, {Time(time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)), "46354.5", number},
		{Time(time.Date(2026, 11, 28, 11, 0, 0, 0, time.UTC).In(auckland)), "46355", number},
		{Link("https://example.com/?a&b_x0041_"), "https://example.com/?a&b_x0041_", text}, {Link("files/A/50% #1 \"é\".pdf"), "files/A/50% #1 \"é\".pdf", text},
		{Link("/v1/files/1"), "/v1/files/1", text}, {Link("a\nb"), "a\nb", text},
	} {
		var b bytes.Buffer
		w := NewWriter(&b, []string{"A", "=B"})
		err := w.Row([]Cell{{}, row.cell})
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		f := opened(t, b.Bytes())
		got, err := f.GetCellValue("Responses", "B2", excelize.Options{RawCellValue: true})
		kind, _ := f.GetCellType("Responses", "B2")
		formula, _ := f.GetCellFormula("Responses", "B2")
		if got != row.want || kind != row.kind || err != nil || formula != "" {
			t.Errorf("%d: %.100q of type %d, %v; want %.100q of type %d", i, got, kind, err, row.want, row.kind)
		}
		if empty, _ := f.GetCellType("Responses", "A2"); empty != excelize.CellTypeUnset {
			t.Errorf("%d: an empty cell has type %d", i, empty)
		}
		linked, target, _ := f.GetCellHyperLink("Responses", "B2")
		want := map[bool]string{true: row.want}[strings.HasPrefix(row.want, "http")]
		if strings.HasPrefix(row.want, "files/") {
			want = "files/A/50%25%20%231%20%22%C3%A9%22.pdf"
		}
		if target != want || linked != (want != "") {
			t.Errorf("%d: a link to %q, want %q", i, target, want)
		}
	}
}

// The heading of each sheet is bold and stays in view. Further rows are on the next sheet.
func TestSheets(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, strings.Split(strings.Repeat("x", 30), ""))
	w.most = 3
	for n := range 5 {
		if err := w.Row([]Cell{Number(fmt.Sprint(n)), Date("2026-11-29"), Number("123456789012"), Link(fmt.Sprint("l", n))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f := opened(t, b.Bytes())
	got := ""
	for _, name := range f.GetSheetList() {
		rows, err := f.GetRows(name)
		style, _ := f.GetCellStyle(name, "A1")
		look, _ := f.GetStyle(style)
		panes, _ := f.GetPanes(name)
		if err != nil || !look.Font.Bold || !panes.Freeze || panes.YSplit != 1 || len(rows[0]) != 30 {
			t.Errorf("%s: %v, %+v, %+v", name, err, look, panes)
		}
		for i, row := range rows[1:] {
			_, target, _ := f.GetCellHyperLink(name, fmt.Sprint("D", i+2))
			got += fmt.Sprint(name, row, target, ";")
		}
		width, _ := f.GetColWidth(name, "B")
		got += fmt.Sprint(width, "|")
	}
	if want := "Responses[0 2026-11-29 123456789012 l0]l0;Responses[1 2026-11-29 123456789012 l1]l1;18|" +
		"Responses 2[2 2026-11-29 123456789012 l2]l2;Responses 2[3 2026-11-29 123456789012 l3]l3;18|Responses 3[4 2026-11-29 123456789012 l4]l4;18|"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if letters(25) != "Z" || letters(26) != "AA" || letters(702) != "AAA" {
		t.Errorf("%s, %s, %s", letters(25), letters(26), letters(702))
	}
}

// BenchmarkRows compares the package with excelize: 200,000 rows of 12 cells.
func BenchmarkRows(b *testing.B) {
	cells := []Cell{{Text: "7XK4-MQ2PWD"}, {Text: "completed"}, Number("42.5"), Date("2026-11-29")}
	row := []any{"7XK4-MQ2PWD", "completed", 42.5, 46355}
	for range 8 {
		cells, row = append(cells, Cell{Text: "An answer <of> some words & more"}), append(row, "An answer <of> some words & more")
	}
	b.Run("xlsx", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w := NewWriter(io.Discard, make([]string, 12))
			for range 200_000 {
				_ = w.Row(cells)
			}
			_ = w.Close()
		}
	})
	b.Run("excelize", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f := excelize.NewFile()
			w, _ := f.NewStreamWriter("Sheet1")
			for n := range 200_000 {
				_ = w.SetRow(fmt.Sprint("A", n+1), row)
			}
			_ = w.Flush()
			_, _ = f.WriteTo(io.Discard)
			_ = f.Close()
		}
	})
}
