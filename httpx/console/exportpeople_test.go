package console_test

import (
	"archive/zip"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"github.com/formsvc/toolkit/formsvc"
)

// The table is offered as a workbook first, with files to those who may read them. It is of the view, in the zone of the console.
func TestExportsForPeople(t *testing.T) {
	w := newGuarded(t)
	c, path := w.form(formsvc.Module{Name: "n", Label: "Size", Type: "number"}, formsvc.Module{Name: "cv", Label: "Your CV", Type: "file"})
	w.mu.Lock()
	w.now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	w.mu.Unlock()
	r := w.response(&c, "Ada", value("n", "-5"))
	w.held(&c, "Trapped", formsvc.HeldTrap)
	file, err := w.svc.Files.Upload(t.Context(), r.Key(), formsvc.FileInput{Name: "cv.txt", Module: "cv", Content: strings.NewReader("x")})
	w.must(err)
	w.cookie("formsvc_zone", "Pacific/Auckland")
	w.who.Permissions = formsvc.Viewer.Permissions()
	page := w.get(path).says("Download this table: Excel (.xlsx) , Excel with files (.zip) , CSV")
	rows := func(content, link string) [][]string {
		f, err := excelize.OpenReader(strings.NewReader(content))
		w.must(err)
		_, target, err := f.GetCellHyperLink("Responses", "H2")
		w.must(err)
		equal(t, target, link, "the file is %s")
		rows, err := f.GetRows("Responses")
		w.must(err)
		w.must(f.Close())
		return rows
	}
	want := [][]string{{"Reference", "Status", "Size", "First name", "Last name", "E-mail", "Submitted (Pacific/Auckland)", "Your CV", "Other files"}}
	want = append(want, []string{r.Reference, "pending", "-5", "Ada", "", "ada@example.com", "2026-11-29 01:00", w.base + "/files/" + string(file.ID)})
	a := w.get(page.linkTo(path + "/export/people.xlsx?column=")).is(200)
	equal(t, a.header.Get("Content-Disposition"), `attachment; filename="responses-2026-11-29.xlsx"`, "it is saved as %s")
	if got := rows(a.body, want[1][7]); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	content := w.get(page.linkTo(path + "/export/people.zip?column=")).is(200).body
	archive, err := zip.NewReader(strings.NewReader(content), int64(len(content)))
	w.must(err)
	table, err := archive.Open("table.xlsx")
	w.must(err)
	text, err := io.ReadAll(table)
	w.must(err)
	want[1][7] = "files/" + r.Reference + "/cv.txt"
	if got := rows(string(text), want[1][7]); !slices.EqualFunc(got, want, slices.Equal) || len(archive.File) != 2 || archive.File[1].Name != want[1][7] {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	w.who.Permissions = []formsvc.Permission{formsvc.CampaignsRead, formsvc.ResponsesRead}
	w.get(path).says("Excel (.xlsx)").lacks("(.zip)")
	w.get(path + "/export/people.zip").is(403).says("files:read")
	w.who.Permissions = nil
	w.get("/campaigns/" + w.ids["campaign"]).says("Excel (.xlsx)").lacks("(.zip)")
}
