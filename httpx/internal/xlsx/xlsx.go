// Package xlsx writes workbooks (ISO/IEC 29500) row by row, in constant memory. A text is never a formula.
package xlsx

import (
	"archive/zip"
	"compress/flate"
	_ "embed"
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"
	"time"
)

// A Cell is one cell. The zero Cell is empty.
type Cell struct {
	Kind   Kind
	Text   string
	Time   time.Time // from 1970 on, shown in its own zone
	Target string    // the address of a link
}

// A Kind says what a cell holds.
type Kind int

// The kinds of cells. A value that a spreadsheet can't hold exactly becomes a text.
const (
	Text   Kind = iota
	Number      // in JSON's grammar
	Date        // YYYY-MM-DD
	Time
	Link
)

// Styles of cells: the order of cellXfs in styles.xml. Those of texts have the format of texts, so that editing one doesn't make a
// formula of it.
const (
	generalStyle = iota
	wholeStyle
	dateStyle
	timeStyle
	textStyle
	linesStyle
	headingStyle
	linkStyle
)

//go:embed styles.xml
var stylesXML string

// The beginnings of the other parts of a workbook.
const (
	head      = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	types     = `application/vnd.openxmlformats-officedocument.spreadsheetml.`
	relation  = `<Relationship Id="rId%d" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/%s" Target="%s"/>`
	relations = head + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`
	spaces    = ` xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"` +
		` xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">`
	typesXML = head + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
		`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
		`<Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="` + types + `sheet.main+xml"/>` +
		`<Override PartName="/xl/styles.xml" ContentType="` + types + `styles+xml"/>`
	sheetXML = head + `<worksheet` + spaces + `<sheetViews><sheetView workbookViewId="0">` + // the first row stays in view
		`<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><cols>`
)

// A Writer writes a workbook. Its first row is the headings. Rows that don't fit on a sheet go on in another one.
type Writer struct {
	zip      *zip.Writer
	sheet    io.Writer
	headings []Cell
	letters  []string // the names of the columns
	cols     string   // their widths
	buffer   []byte
	sheets   int
	rows     int // of the current sheet
	most     int
	links    int    // in the workbook
	clicks   []byte // the links of the current sheet
	targets  []byte // their addresses
	err      error  // the first one
}

// NewWriter begins a workbook. A width is in characters.
func NewWriter(to io.Writer, headings []string, width func(column int) int) *Writer {
	w := &Writer{zip: zip.NewWriter(to), most: maxRows}
	w.zip.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestSpeed) })
	for i, text := range headings {
		w.headings, w.letters = append(w.headings, Cell{Text: text}), append(w.letters, letters(i))
		w.cols += fmt.Sprintf(`<col min="%d" max="%[1]d" width="%d" customWidth="1"/>`, i+1, width(i))
	}
	w.part("_rels/.rels", relations+fmt.Sprintf(relation, 1, "officeDocument", "xl/workbook.xml")+`</Relationships>`)
	w.part("xl/styles.xml", stylesXML)
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

// part begins a part of the workbook with a text.
func (w *Writer) part(name, text string) {
	if w.err == nil {
		w.sheet, w.err = w.zip.Create(name)
	}
	w.buffer = append(w.buffer[:0], text...)
	w.flush()
}

func (w *Writer) flush() {
	if w.err == nil {
		_, w.err = w.sheet.Write(w.buffer)
	}
	w.buffer = w.buffer[:0]
}

func (w *Writer) begin() {
	w.sheets, w.rows = w.sheets+1, 0
	w.part(fmt.Sprintf("xl/worksheets/sheet%d.xml", w.sheets), sheetXML+w.cols+`</cols><sheetData>`)
	w.row(w.headings, headingStyle)
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
		if c := &cells[i]; c.Text != "" || !c.Time.IsZero() {
			w.append(`<c r="`, w.letters[i], number, `" s="`)
			w.cell(c, w.letters[i]+number, style)
		}
	}
	w.append(`</row>`)
	w.flush()
}

func (w *Writer) append(texts ...string) {
	for _, text := range texts {
		w.buffer = append(w.buffer, text...)
	}
}

// cell writes a cell from its style on.
func (w *Writer) cell(c *Cell, place string, style int) {
	text := c.Text
	switch c.Kind {
	case Number:
		if as, ok := exact(text); ok {
			w.append(strconv.Itoa(as), `"><v>`, text, `</v></c>`)
			return
		}
	case Date, Time:
		at, as := c.Time, timeStyle
		if c.Kind == Date {
			at, _ = time.Parse(time.DateOnly, text) // what it can't read has no serial number
			as = dateStyle
		}
		if days, ok := serial(at); ok {
			w.append(strconv.Itoa(as), `"><v>`, days, `</v></c>`)
			return
		}
	case Link:
		if w.links < maxLinks {
			w.links, style = w.links+1, linkStyle
			w.clicks = fmt.Appendf(w.clicks, `<hyperlink ref="%s" r:id="rId%d"/>`, place, w.links)
			w.targets = fmt.Appendf(w.targets, relation, w.links, `hyperlink" TargetMode="External`, html.EscapeString(c.Target))
		}
	case Text:
	}
	if style == textStyle && strings.Contains(text, "\n") {
		style = linesStyle
	}
	w.append(strconv.Itoa(style), `" t="inlineStr"><is><t xml:space="preserve">`)
	w.buffer = appendEscaped(w.buffer, truncate(text))
	w.append(`</t></is></c>`)
}

// end ends a sheet.
func (w *Writer) end() {
	w.append(`</sheetData><autoFilter ref="A1:`, w.letters[len(w.letters)-1], strconv.Itoa(w.rows), `"/>`)
	if len(w.clicks) > 0 {
		w.append(`<hyperlinks>`, string(w.clicks), `</hyperlinks>`)
	}
	w.append(`</worksheet>`)
	w.flush()
	if len(w.clicks) > 0 {
		w.part(fmt.Sprintf("xl/worksheets/_rels/sheet%d.xml.rels", w.sheets), relations+string(w.targets)+`</Relationships>`)
	}
	w.clicks, w.targets = nil, nil
}

// Close ends the workbook. Without it no program takes what was written for a whole one.
func (w *Writer) Close() error {
	w.end()
	sheets, list, overrides := "", fmt.Sprintf(relation, 1, "styles", "styles.xml"), ""
	for n := 1; n <= w.sheets; n++ {
		sheets += fmt.Sprintf(`<sheet name="%s" sheetId="%d" r:id="rId%d"/>`, strings.TrimSuffix(fmt.Sprint("Responses ", n), " 1"), n, n+1)
		list += fmt.Sprintf(relation, n+1, "worksheet", fmt.Sprintf("worksheets/sheet%d.xml", n))
		overrides += fmt.Sprintf(`<Override PartName="/xl/worksheets/sheet%d.xml" ContentType="%sworksheet+xml"/>`, n, types)
	}
	w.part("xl/workbook.xml", head+`<workbook`+spaces+`<sheets>`+sheets+`</sheets></workbook>`)
	w.part("xl/_rels/workbook.xml.rels", relations+list+`</Relationships>`)
	w.part("[Content_Types].xml", typesXML+overrides+`</Types>`)
	if w.err == nil {
		w.err = w.zip.Close()
	}
	return w.err
}
