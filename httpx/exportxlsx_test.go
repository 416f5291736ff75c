package httpx_test

import (
	"archive/zip"
	"encoding/csv"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"github.com/formsvc/toolkit/formsvc"
)

// workbook returns the rows of a workbook as they are stored.
func workbook(t *testing.T, content string) (f *excelize.File, rows [][]string) {
	t.Helper()
	f = must(excelize.OpenReader(strings.NewReader(content)))
	t.Cleanup(func() { _ = f.Close() })
	return f, must(f.GetRows("Responses", excelize.Options{RawCellValue: true}))
}

// unzipped returns the contents of an archive by name.
func unzipped(content string) map[string]string {
	parts := map[string]string{}
	for _, f := range must(zip.NewReader(strings.NewReader(content), int64(len(content)))).File {
		parts[f.Name] = string(must(io.ReadAll(must(f.Open()))))
	}
	return parts
}

const surveyed = `{"title":"c","modules":[{"name":"n","label":"=Size","type":"number"},{"name":"d","type":"date"},{"name":"ok","label":"Sure?","type":"boolean"},` +
	`{"name":"c","type":"choice","multiple":true,"options":["a;","b"]},{"name":"t"},{"name":"cv","label":"Your CV","type":"file"}]}`

// A workbook has the responses of the CSV with the same query, with labels and typed cells.
func TestExportXLSX(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(surveyed)
	first := w.respond(campaign, "+ada@example.com", `{"n":{"value":["-5"]},"d":{"value":["2026-11-29"]},"ok":{"value":["true"]},"c":{"value":["b","a;"]},"t":{"value":["=cmd|' /C calc'!A0"]}}`)
	file := w.do("POST", campaign+"/responses/"+first.text("uuid")+"/files?module=cv", "x").is(201, "")
	w.respond(campaign, "eve@example.com", `{"n":{"value":["12345678901234567"]},"t":{"value":["+49"]}}`)
	list := campaign + "/responses.xlsx"
	book, rows := workbook(t, w.do("GET", list+"?order=asc", "").is(200, "").body)
	want := [][]string{
		{"Reference", "Status", "=Size", "d", "Sure?", "c", "t", "First name", "Last name", "E-mail", "Submitted (UTC)", "Completed (UTC)", "Your CV", "Other files"},
		{first.text("reference"), "pending", "-5", "46355", "Yes", `b; "a;"`, "=cmd|' /C calc'!A0", "", "", "+ada@example.com", "46347.354", "", "/v1/files/" + file.text("uuid")},
	}
	rows[1][10] = rows[1][10][:9]
	if len(rows) != 3 || !slices.Equal(rows[0], want[0]) || !slices.Equal(rows[1], want[1]) {
		t.Errorf("got\n%q\nwant\n%q", rows, want)
	}
	for cell, want := range map[string]excelize.CellType{"C2": excelize.CellTypeUnset, "K2": excelize.CellTypeUnset, "G2": excelize.CellTypeInlineString, "C3": excelize.CellTypeInlineString} {
		if got, err := book.GetCellType("Responses", cell); got != want || err != nil {
			t.Errorf("%s has type %d, %v", cell, got, err)
		}
	}
	for _, query := range []string{"", "?order=asc", "?email=eve@example.com", "?search=%2B49", "?column=reference&column=t", "?column=reference&cursor=" + first.text("uuid") + "&order=asc", "?status=none&column=reference"} {
		table := must(csv.NewReader(strings.NewReader(w.do("GET", strings.Replace(list, "xlsx", "csv", 1)+query, "").is(200, "").body)).ReadAll())
		_, rows := workbook(t, w.do("GET", list+query, "").is(200, "").body)
		at, got := slices.Index(table[0], "reference"), len(rows)
		equal(t, got, len(table), "%s: %d rows", query)
		for i := 1; i < min(got, len(table)); i++ {
			equal(t, rows[i][0], table[i][at], "%s: row %d is %s", query, i)
		}
	}
	_, rows = workbook(t, w.do("GET", list, "", as(w.key(w.mine, formsvc.ResponsesRead))).is(200, "").body)
	equal(t, len(rows[0]), 12, "%d columns without files:read")
	w.serve(nil)
	equal(t, w.do("HEAD", list, "", header("Range", "bytes=0-1")).is(200, "").header.Get("Accept-Ranges"), "", "an export takes ranges: %s")
}

// An archive has the workbook and the files. It leaves out damaged ones, and says so.
func TestExportZIP(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(surveyed)
	one, two := w.respond(campaign, "ada@example.com", `{}`), w.respond(campaign, "eve@example.com", `{}`)
	put := func(r *answer, name, content string) string {
		w.now = w.now.Add(1e6)
		return w.do("POST", campaign+"/responses/"+r.text("uuid")+"/files?module=cv", content, named(`attachment; filename="`+name+`"`)).is(201, "").text("uuid")
	}
	large := noise(600_000)
	put(one, "CV.txt", "first")
	twin := "cv " + put(one, "cv.TXT", "second") + ".TXT"
	put(one, "con.txt", large)
	put(one, "a<b>:é.txt", "")
	damaged := []string{put(two, "small.txt", "damaged"), put(two, "large.txt", large), put(two, "gone.txt", "x")}
	for i, content := range []string{"Damaged", large[:599_999] + "x"} {
		key := formsvc.BlobKey(formsvc.ID(damaged[i]))
		noError(t, w.blobs.Delete(t.Context(), key))
		must(w.blobs.Store.Put(t.Context(), key, strings.NewReader(content)))
	}
	noError(t, w.blobs.Delete(t.Context(), formsvc.BlobKey(formsvc.ID(damaged[2]))))
	list, folder := campaign+"/responses.zip", "files/"+one.text("reference")+"/"
	parts := unzipped(w.do("GET", list, "").is(200, "").body)
	book, rows := workbook(t, parts["table.xlsx"])
	equal(t, rows[2][12], folder+"CV.txt\n"+folder+twin+"\n"+folder+"_con.txt\n"+folder+"a_b__é.txt", "the table has the files %s")
	if _, target, err := book.GetCellHyperLink("Responses", "M2"); target != "" || err != nil {
		t.Errorf("several files are a link to %s, %v", target, err)
	}
	for name, want := range map[string]string{"CV.txt": "first", twin: "second", "_con.txt": large, "a_b__é.txt": ""} {
		if got, ok := parts[folder+name]; got != want || !ok {
			t.Errorf("%s: %d bytes, %t", name, len(got), ok)
		}
	}
	missing := parts["missing.txt"]
	for i, name := range []string{"small.txt", "large.txt", "gone.txt"} {
		if line := "files/" + two.text("reference") + "/" + name + ": the stored file " + damaged[i] + " is damaged or missing\r\n"; !strings.Contains(missing, line) {
			t.Errorf("no %q in %s", line, missing)
		}
	}
	equal(t, len(parts), 6, "%d parts")
	parts = unzipped(w.do("GET", list+"?email=ada@example.com", "").is(200, "").body)
	equal(t, parts["missing.txt"], "", "of other responses: %s")
	w.bare.SetArchived(3)
	parts = unzipped(w.do("GET", list+"?email=ada@example.com", "").is(200, "").body)
	equal(t, len(parts), 5, "%d parts with at most 3 files")
	if !strings.Contains(parts["missing.txt"], folder+"a_b__é.txt: the archive has 3 files already") {
		t.Errorf("missing: %s", parts["missing.txt"])
	}
	opened := 0
	w.blobs.opening = func() { // the large file is read for the second time
		if opened++; opened == 4 {
			w.blobs.damage(300_000, 0)
		}
	}
	server := httptest.NewServer(w.api)
	defer server.Close()
	if status, body, err := w.over(server, "GET", list+"?email=ada@example.com", nil); err == nil || strings.Contains(body, "missing.txt") {
		t.Errorf("damage found late: %d, %v, %d bytes", status, err, len(body))
	}
}
