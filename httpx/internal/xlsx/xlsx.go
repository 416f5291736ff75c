// Package xlsx writes workbooks (ISO/IEC 29500) row by row, in constant memory. A text is never a formula.
package xlsx

import (
	"archive/zip"
	"compress/flate"
	_ "embed"
	"fmt"
	"io"
	"math"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/formsvc/toolkit/formsvc"
)

// Limits of a workbook. The first two are Excel's.
const (
	maxRows  = 1 << 20 // of a sheet
	maxText  = 32_767  // of a cell, in UTF-16 units
	maxLinks = 10_000  // that can be clicked, since memory holds them; further ones are texts
)

//go:embed parts.tmpl
var partsText string

// A Writer writes a workbook. Its first row is the headings. Rows that don't fit on a sheet go on in another one.
type Writer struct {
	zip      *zip.Writer
	parts    *template.Template
	out      io.Writer // the current part
	headings []Cell
	letters  []string // the names of the columns
	buffer   []byte
	book     book
	rows     int // of the current sheet
	most     int // rows of a sheet
	links    int
	err      error // the first one
}

// A book is what the parts show.
type book struct {
	Sheets  []int
	Columns string
	Last    string                           // the last cell of the current sheet
	Links   []struct{ Place, Target string } // of the current sheet
}

// NewWriter begins a workbook.
func NewWriter(to io.Writer, headings []string) *Writer {
	w := &Writer{zip: zip.NewWriter(to), parts: template.Must(template.New("").Parse(partsText)), most: maxRows}
	w.zip.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestSpeed) })
	for i, text := range headings {
		w.headings, w.letters = append(w.headings, Cell{Text: text}), append(w.letters, letters(i))
		width := min(max(utf8.RuneCountInString(text)+4, 18), 40)
		w.book.Columns += fmt.Sprintf(`<col min="%d" max="%[1]d" width="%d" customWidth="1"/>`, i+1, width)
	}
	w.part("_rels/.rels", "_rels/.rels")
	w.part("xl/styles.xml", "xl/styles.xml")
	w.begin()
	return w
}

// letters returns the name of a column: A to Z, AA and so on.
func letters(i int) string {
	if i < 26 {
		return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i : i+1]
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
	w.book.Last = w.letters[len(w.letters)-1] + strconv.Itoa(w.rows)
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

// row writes a row whose texts have that style, unless they are links.
func (w *Writer) row(cells []Cell, style int) {
	w.rows++
	b, number := fmt.Appendf(w.buffer[:0], `<row r="%d">`, w.rows), strconv.Itoa(w.rows)
	for i := range cells {
		c, style := &cells[i], style
		if c.value != "" {
			b = fmt.Appendf(b, `<c r="%s%s" s="%d"><v>%s</v></c>`, w.letters[i], number, c.style, c.value)
			continue
		}
		if c.Text == "" {
			continue
		}
		if c.target != "" && w.links < maxLinks {
			w.links, style = w.links+1, linkStyle
			w.book.Links = append(w.book.Links, struct{ Place, Target string }{w.letters[i] + number, c.target})
		}
		b = fmt.Appendf(b, `<c r="%s%s" s="%d" t="inlineStr"><is><t xml:space="preserve">`, w.letters[i], number, style)
		b = append(appendEscaped(b, truncate(c.Text)), `</t></is></c>`...)
	}
	w.buffer = append(b, `</row>`...)
	if w.err == nil {
		_, w.err = w.out.Write(w.buffer)
	}
}

// truncate returns a text that fits in a cell. It says so if it isn't all.
func truncate(text string) string {
	if len(text) <= maxText {
		return text
	}
	units := utf16.Encode([]rune(text[:min(len(text), 4*maxText)])) // more is too much in any case
	if len(units) <= maxText {
		return text
	}
	begin := strings.TrimRight(string(utf16.Decode(units[:maxText-100])), "\ufffd")
	return fmt.Sprintf("%s… [truncated from %d characters]", begin, utf8.RuneCountInString(text))
}

// escapeForm is how Excel writes a character that XML can't have.
var escapeForm = regexp.MustCompile(`^_x[0-9A-Fa-f]{4}_`)

// appendEscaped appends a text as XML.
func appendEscaped(b []byte, text string) []byte {
	for i, r := range text {
		switch {
		case r == '&' || r == '<' || r == '>':
			b = fmt.Appendf(b, "&#%d;", r)
		case r < ' ' && r != '\t' && r != '\n' || r == 0xFFFE || r == 0xFFFF || r == '_' && escapeForm.MatchString(text[i:]):
			b = fmt.Appendf(b, "_x%04X_", r)
		default:
			b = append(b, string(r)...)
		}
	}
	return b
}

// Styles of cells, as parts.tmpl has them. The last three have the format of texts, so that editing one doesn't make a formula of it.
const (
	numberStyle = iota
	wholeStyle
	dateStyle
	timeStyle
	textStyle
	headingStyle
	linkStyle
)

// A Cell is one cell. The zero Cell is empty.
type Cell struct {
	Text   string
	value  string // a number instead of the text
	style  int    // of the number
	target string // of a link
}

// Number returns a cell with a number, or with a text if Excel would change it: it keeps 15 digits.
func Number(text string) Cell {
	digits, _, exponent := strings.Cut(strings.ToLower(text), "e")
	digits = strings.Trim(strings.Replace(digits, ".", "", 1), "-0")
	x, err := strconv.ParseFloat(text, 64)
	size := math.Abs(x)
	if !formsvc.ValidNumber(text) || err != nil || len(digits) > 15 || digits != "" && (size < 0x1p-1022 || size > 9.99999999999999e307) {
		return Cell{Text: text}
	}
	if len(text) > 11 && !exponent && !strings.Contains(text, ".") { // Excel would show 1.23E+11
		return Cell{value: text, style: wholeStyle}
	}
	return Cell{value: text, style: numberStyle}
}

// Date returns a cell with a day, YYYY-MM-DD, or with a text before 1901, since Excel has a 29 February 1900.
func Date(text string) Cell {
	if at, err := time.Parse(time.DateOnly, text); err == nil && at.Year() > 1900 {
		return Cell{value: days(at), style: dateStyle}
	}
	return Cell{Text: text}
}

// Time returns a cell with a time as it is in its own zone, or an empty one for the zero time.
func Time(at time.Time) Cell {
	if at.IsZero() {
		return Cell{}
	}
	return Cell{value: days(at), style: timeStyle}
}

// days returns the days since the end of 1899.
func days(at time.Time) string {
	_, offset := at.Zone()
	return strconv.FormatFloat(float64(at.Unix()+int64(offset))/(24*60*60)+25_569, 'f', -1, 64)
}

// Link returns a cell with an address, or with a path beside the workbook. It is a text if there are several, or a path without a host.
func Link(text string) Cell {
	switch {
	case strings.Contains(text, "\n") || strings.HasPrefix(text, "/"):
		return Cell{Text: text}
	case strings.Contains(text, "://"):
		return Cell{Text: text, target: text}
	}
	return Cell{Text: text, target: (&url.URL{Path: text}).EscapedPath()}
}
