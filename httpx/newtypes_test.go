package httpx_test

import (
	"cmp"
	"encoding/csv"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/intake"
)

// A phone, time, rating, scale, consent, patterned text or other answer is the same in the database, in every export and after an import, however the form was filled in.
func TestFormToExportToImport(t *testing.T) {
	const body = `{"title":"c","requireEmail":false,"form":{"enabled":true},"modules":[{"name":"tel","type":"phone"},{"name":"at","type":"time"},` +
		`{"name":"stars","type":"rating","minLabel":"Bad"},{"name":"scale","type":"scale","min":-2},{"name":"ok","type":"consent"},` +
		`{"name":"part","type":"section","page":true},{"name":"code","pattern":"[=+]?[A-Z]{2}[0-9]+"},` +
		`{"name":"pick","type":"choice","options":["Red","Blue"],"other":true},` +
		`{"name":"many","type":"choice","options":["a"],"other":true,"multiple":true},` +
		`{"name":"note","type":"longtext"},{"name":"words","multiple":true},{"name":"amount","type":"number"},{"name":"day","type":"date"},{"name":"sure","type":"boolean"},` +
		`{"name":"mail","type":"email"},{"name":"web","type":"url"},{"name":"from","hidden":true}]}`
	onEveryStore(t, func(t *testing.T, w *world) {
		created := w.do("POST", "/v1/campaigns", body).is(201, "").body
		for _, want := range []string{`"min":1,"max":5,"minLabel":"Bad"}`, `"min":-2,"max":10}`} {
			if !strings.Contains(created, want) {
				t.Errorf("no %s in %s", want, created)
			}
		}
		key := formsvc.CampaignKey{AccountID: w.mine.account.ID}
		key.ID = must(w.svc.Campaigns.List(t.Context(), formsvc.CampaignQuery{AccountID: key.AccountID})).Items[0].ID
		stored := func() []formsvc.Response {
			return must(w.svc.Responses.List(t.Context(), formsvc.ResponseQuery{AccountID: key.AccountID, CampaignID: key.ID})).Items
		}
		erase := func() {
			for _, r := range stored() {
				noError(t, w.svc.Responses.Delete(t.Context(), r.Key(), nil))
			}
		}
		list := "/v1/campaigns/" + string(key.ID) + "/responses"
		form, c := must(intake.New(w.svc, &intake.Options{PerVisitor: -1})), must(w.svc.Campaigns.Get(t.Context(), key))
		for _, test := range []struct {
			name, sent, stored, table string // "" is refused; table defaults to stored
			typed                     bool   // whether the cell of the workbook is a number
		}{
			{"tel", " +49 (0)30 / 123-456", "+49 (0)30 / 123-456", "'+49 (0)30 / 123-456", false}, {"tel", "06 12 34 56 78", "06 12 34 56 78", "", false},
			{"tel", "0123456789", "0123456789", "", false}, {"tel", "12345", "", "", false},
			{"at", "00:00", "00:00", "", false}, {"at", "23:59", "23:59", "", false}, {"at", "9:05", "09:05", "", false},
			{"at", "24:00", "", "", false}, {"at", "9:5", "", "", false},
			{"stars", "1", "1", "", true}, {"stars", "5", "5", "", true}, {"stars", "5 ", "5", "", true},
			{"stars", "0", "", "", false}, {"stars", "6", "", "", false}, {"stars", "1.0", "", "", false},
			{"scale", "-2", "-2", "", true}, {"scale", "0", "0", "", true}, {"scale", "10", "10", "", true}, {"scale", "-3", "", "", false},
			{"ok", "true", "true", "", false}, {"ok", "false", "", "", false},
			{"code", "AB1", "AB1", "", false}, {"code", "=AB1", "=AB1", "'=AB1", false}, {"code", "ab1", "", "", false}, {"code", "AB1 ", "AB1", "", false},
			{"pick", "Blue", "Blue", "", false}, {"pick", " Red", "Red", "", false}, {"pick", " Pink ", "Pink", "", false}, {"pick", "-1+1", "-1+1", "'-1+1", false},
			{"many", "a", "a", "", false}, {"many", "b; c", "b; c", `"b; c"`, false}, {"many", "part", "part", "", false}, {"part", "x", "", "", false},
			{"note", " =x;  y ", " =x;  y ", "' =x;  y ", false}, {"note", "@x", "@x", "'@x", false}, {"words", "a; b", "a; b", `"a; b"`, false}, {"from", "+1", "+1", "'+1", false},
			{"amount", "-1234.50", "-1234.50", "", true}, {"amount", "0012", "12", "", true}, {"amount", "12345678901234567890", "12345678901234567890", "", false}, {"amount", "1e", "", "", false},
			{"day", "2026-02-29", "", "", false}, {"day", "2024-02-29", "2024-02-29", "", true}, {"day", "0099-12-31", "0099-12-31", "", false}, {"sure", "false", "false", "", false},
			{"mail", "=a@b.de", "=a@b.de", "'=a@b.de", false}, {"web", "https://example.com/?a=;", "https://example.com/?a=;", "", false},
		} {
			w.now = w.now.Add(time.Minute)
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/"+c.FormToken, strings.NewReader(url.Values{test.name: {test.sent}}.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			reply := httptest.NewRecorder()
			if form.ServeHTTP(reply, r); (reply.Code == 303) != (test.stored != "") {
				t.Errorf("%s %q: %d", test.name, test.sent, reply.Code)
			}
			if test.sent != test.stored { // the API takes values as they are stored
				w.do("POST", list, `{"responses":{"`+test.name+`":{"value":["`+test.sent+`"]}}}`).is(map[bool]int{true: 201, false: 422}[test.sent[0] == ' '], "")
			}
			all := stored()
			if test.stored == "" {
				equal(t, len(all), 0, "%d responses to what is refused")
				continue
			}
			old := all[len(all)-1]
			exported := func(when string) {
				t.Helper()
				record := must(csv.NewReader(strings.NewReader(w.do("GET", list+".csv?order=asc", "").is(200, "").body)).ReadAll())
				at, want := slices.Index(record[0], test.name), test.table
				if want == "" {
					want = test.stored
				}
				equal(t, record[1][at], want, when+": the CSV has %s")
				book, rows := workbook(t, w.do("GET", list+".xlsx?order=asc", "").is(200, "").body)
				cell := must(excelize.CoordinatesToCellName(slices.Index(rows[0], test.name)+1, 2))
				shown := cmp.Or(map[string]string{"ok": "Yes", "manyb; c": `"b; c"`, "wordsa; b": `"a; b"`, "day2024-02-29": "45351", "surefalse": "No"}[strings.TrimSuffix(test.name+test.stored, "true")], test.stored)
				equal(t, slices.Index(rows[0], "part")+slices.Index(record[0], "part"), -2, when+": columns %d of a section")
				equal(t, must(book.GetCellValue("Responses", cell, excelize.Options{RawCellValue: true})), shown, when+": the workbook has %s")
				equal(t, must(book.GetCellType("Responses", cell)) == excelize.CellTypeUnset, test.typed, when+": the cell has a number: %t")
				if text := w.do("GET", list+".ndjson?order=asc", "").is(200, "").body; !strings.Contains(text, `"`+test.name+`":{"value":["`+test.stored+`"]}`) {
					t.Errorf("%s: %s", when, text)
				}
			}
			exported("filled in")
			erase()
			row := formsvc.ImportRow{ResponseInput: formsvc.ResponseInput{Answers: must(old.Answers.List())}, Reference: old.Reference, CreatedAt: old.CreatedAt}
			report := must(w.svc.Responses.Import(t.Context(), key, func(yield func(formsvc.ImportRow, error) bool) { yield(row, nil) }, nil))
			equal(t, report.Imported, 1, "imported %d")
			exported("imported")
			erase()
		}
	})
}

// What GET returns of a campaign can be sent back. The document allows both, with every member that a form and a module may have.
func TestEveryMemberGoesThereAndBack(t *testing.T) {
	body := `{"title":"c","timeZone":"Asia/Tokyo","requireName":true,"metadata":{"a":"b"},"opensAt":"2026-01-01T00:00:00Z","closesAt":"2099-01-01T00:00:00Z","form":{"enabled":true,` +
		`"description":"d","successMessage":"s","redirectUrl":"https://example.com/{reference}","allowedOrigins":["https://example.com"],"language":"ja","prefill":["email","n"],` +
		`"texts":{"button":"b","thanksTitle":"t","closed":"c","full":"f"},"confirmation":{"enabled":true,"subject":"s","text":"t","replyTo":"a@b.de","answers":true},"maxResponses":5,` +
		`"oncePerEmail":true,"theme":{"accent":"#1557a8","scheme":"dark","width":"wide","logo":"PICTURE","logoAlt":"l","cover":"PICTURE"}},"modules":[` +
		`{"name":"n","type":"number","label":"l","help":"h","placeholder":"p","required":true,"min":-0.5,"max":1e3,"integer":true,"default":["3"],"showIf":null},` +
		`{"name":"pick","type":"choice","options":["a",{"value":"b","label":"B"},{"value":"c"}],"multiple":true,"other":true,"maxLength":9,"places":{"a":1},"showIf":{"module":"n","equals":["1"]}},` +
		`{"name":"code","pattern":"[A-Z]+","patternHelp":"Letters"},{"name":"from","hidden":true},{"name":"cv","type":"file","accept":[".pdf"]},` +
		`{"name":"stars","type":"rating","minLabel":"-","maxLabel":"+"},{"name":"day","type":"date","min":"2026-01-01"},{"name":"part","type":"section","page":true}]}`
	w := newWorld(t, nil)
	const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
	a := w.do("POST", "/v1/campaigns", strings.ReplaceAll(body, "PICTURE", picture)).is(201, "")
	path := "/v1/campaigns/" + a.text("uuid")
	shown := w.do("GET", path, "").is(200, "").body
	for _, of := range []any{formsvc.Form{}, formsvc.FormTexts{}, formsvc.Confirmation{}, formsvc.FormTheme{}, formsvc.Module{}} {
		for field := range reflect.TypeOf(of).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !strings.Contains(shown, `"`+name+`":`) && !slices.Contains([]string{"labels", "format", "hideName"}, name) {
				t.Errorf("%T: no %s in %s", of, name, shown)
			}
		}
	}
	w.now = w.now.Add(time.Minute)
	again := w.do("PUT", path, shown).is(200, "").body
	cut := regexp.MustCompile(`"updatedAt":"[^"]*"`)
	equal(t, cut.ReplaceAllString(again, ""), cut.ReplaceAllString(shown, ""), "PUT of it: %s")
}
