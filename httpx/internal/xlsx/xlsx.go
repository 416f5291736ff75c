// Package xlsx writes workbooks (ISO/IEC 29500) row by row, in constant memory. A text is never a formula.
package xlsx

import (
	"archive/zip"
	"compress/flate"
	_ "embed"
	"fmt"
	"io"
	"strconv"
	"text/template"
	"unicode/utf8"
)

//go:embed parts.tmpl
var partsText string

// A Writer writes a workbook. Its first row is the headings. Rows that don't fit on a sheet go on in another one.
type Writer struct {
	zip      *zip.Writer
	parts    *template.Template
	out      io.Writer // the current part
	headings []Cell
	columns  []string // their letters
	buffer   []byte
	book     book
	rows     int // of the current sheet
	most     int
	links    int
	err      error // the first one
}

// A book is what the parts show.
type book struct {
	Sheets []int
	Widths []int
	Last   string                           // the last cell of the current sheet
	Links  []struct{ Place, Target string } // of the current sheet
}

// Number returns the number of the item at an index.
func (book) Number(i int) int { return i + 1 }

// NewWriter begins a workbook.
func NewWriter(to io.Writer, headings []string) *Writer {
	w := &Writer{zip: zip.NewWriter(to), parts: template.Must(template.New("").Parse(partsText)), most: maxRows}
	w.zip.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestSpeed) })
	for i, text := range headings {
		w.headings, w.columns = append(w.headings, Cell{Text: text}), append(w.columns, letters(i))
		w.book.Widths = append(w.book.Widths, min(max(utf8.RuneCountInString(text)+4, 18), 40))
	}
	w.part("_rels/.rels", "_rels/.rels")
	w.part("xl/styles.xml", "xl/styles.xml")
	w.begin()
	return w
}

// letters returns the name of a column: A to Z, AA and so on.
func letters(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return letters(i/26-1) + letters(i%26)
}

// part begins a part of the workbook.
func (w *Writer) part(name, text string) {
	if w.err == nil {
		w.out, w.err = w.zip.Create(name)
	}
	w.write(text)
}

func (w *Writer) write(text string) {
	if w.err == nil {
		w.err = w.parts.ExecuteTemplate(w.out, text, &w.book)
	}
}

func (w *Writer) begin() {
	w.rows, w.book.Links, w.book.Sheets = 0, nil, append(w.book.Sheets, len(w.book.Sheets)+1)
	w.part(fmt.Sprintf("xl/worksheets/sheet%d.xml", len(w.book.Sheets)), "sheet")
	w.row(w.headings, headingStyle)
}

func (w *Writer) end() {
	w.book.Last = w.columns[len(w.columns)-1] + strconv.Itoa(w.rows)
	w.write("end of sheet")
	if len(w.book.Links) > 0 {
		w.part(fmt.Sprintf("xl/worksheets/_rels/sheet%d.xml.rels", len(w.book.Sheets)), "links")
	}
}

// Close ends the workbook. Without it no program takes what was written for a whole one.
func (w *Writer) Close() error {
	w.end()
	for _, name := range []string{"xl/workbook.xml", "xl/_rels/workbook.xml.rels", "[Content_Types].xml"} {
		w.part(name, name)
	}
	if w.err == nil {
		w.err = w.zip.Close()
	}
	return w.err
}

// Row writes a row.
func (w *Writer) Row(cells []Cell) error {
	if w.rows == w.most {
		w.end()
		w.begin()
	}
	w.row(cells, textStyle)
	return w.err
}

// row writes a row whose texts have that style.
func (w *Writer) row(cells []Cell, style int) {
	w.rows++
	number := strconv.Itoa(w.rows)
	w.append(`<row r="`, number, `">`)
	for i := range cells {
		if c := &cells[i]; c.Text != "" || c.value != "" {
			w.append(`<c r="`, w.columns[i], number, `" s="`)
			w.cell(c, w.columns[i]+number, style)
		}
	}
	w.append(`</row>`)
	if w.err == nil {
		_, w.err = w.out.Write(w.buffer)
	}
	w.buffer = w.buffer[:0]
}

func (w *Writer) append(texts ...string) {
	for _, text := range texts {
		w.buffer = append(w.buffer, text...)
	}
}

// cell writes a cell from its style on.
func (w *Writer) cell(c *Cell, place string, style int) {
	if c.value != "" {
		w.append(strconv.Itoa(c.style), `"><v>`, c.value, `</v></c>`)
		return
	}
	if c.target != "" && w.links < maxLinks {
		w.links, style = w.links+1, c.style
		w.book.Links = append(w.book.Links, struct{ Place, Target string }{place, c.target})
	}
	w.append(strconv.Itoa(style), `" t="inlineStr"><is><t xml:space="preserve">`)
	w.buffer = appendEscaped(w.buffer, truncate(c.Text))
	w.append(`</t></is></c>`)
}
