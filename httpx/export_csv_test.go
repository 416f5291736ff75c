package httpx_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"bytes"
	"context"
	"errors"
	"io"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// checkExport checks the invariants of every export.
func (a *answer) checkExport() {
	a.tb.Helper()
	kind := map[string]string{
		".csv": "text/csv; charset=utf-8; header=present", ".ndjson": "application/x-ndjson", ".zip": "application/zip",
		".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	}[a.what[strings.LastIndexByte(a.what, '.'):]]
	name := a.what[strings.LastIndexByte(a.what, '.'):]
	campaign := strings.ToLower(strings.Split(a.what, "/")[3])
	for header, want := range map[string]string{
		"Content-Type": kind, "Cache-Control": "no-store", "Content-Length": "",
		"Content-Disposition": `attachment; filename="responses-` + campaign + name + `"`,
	} {
		if got := a.header.Get(header); got != want {
			a.errorf("%s = %q, want %q", header, got, want)
		}
	}
}

// respond creates a response with these answers, given as JSON.
func (w *world) respond(campaign, email, answers string) *answer {
	w.tb.Helper()
	w.now = w.now.Add(time.Second)
	return w.do("POST", campaign+"/responses", fmt.Sprintf(`{"user":{"email":%q},"responses":%s}`, email, answers)).is(201, "")
}

const tableHeader = "uuid,reference,status,email,firstName,lastName,createdAt,updatedAt,completedAt"

// row returns the beginning of a record.
func row(a *answer) string {
	email := a.text("user", "email")
	if strings.HasPrefix(email, "+") {
		email = "'" + email
	}
	return strings.Join([]string{
		a.text("uuid"), a.text("reference"), a.text("status"), email, a.text("user", "firstName"), a.text("user", "lastName"),
		a.text("createdAt"), a.text("updatedAt"), "",
	}, ",")
}

func TestExportCSV(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	list := campaign + "/responses.csv"
	equal(t, w.do("GET", list, "").is(200, "").body, tableHeader+"\r\n", "no responses: %q")
	first := w.respond(campaign, "+ada@example.com", `{"status":{"value":["=1+1"]},"b,c":{"value":["x","-y"]},"empty":{"value":[]}}`)
	second := w.respond(campaign, "ada@example.com", `{"a":{"value":["line\r\nbreak \"quoted\""]},"é😀":{"value":["😀; ","\u0001"]},"=x":{"value":[""]}}`)
	want := tableHeader + `,'=x,a,"b,c",empty,responses.status,é😀` + "\r\n" +
		row(second) + `,,"line` + "\r\n" + `break ""quoted""",,,,"😀; ; ` + "\x01\"\r\n" +
		row(first) + `,,,"x; '-y",,'=1+1,` + "\r\n"
	if got := w.do("GET", list, "").is(200, "").body; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	// The modules of the campaign come first, in order.
	w.do("PUT", campaign, `{"title":"c","modules":[{"name":"zulu"},{"name":"a"}]}`).is(200, "")
	got := w.do("GET", list+"?reference="+first.text("reference"), "").is(200, "").body
	want = tableHeader + `,zulu,a,"b,c",empty,responses.status` + "\r\n" + row(first) + `,,,"x; '-y",,'=1+1` + "\r\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	w.do("GET", list+"?column=zulu&column=zulu", "").is(400, "invalid_parameter").faults("column repeated_parameter")
	got = w.do("GET", list+"?search=%3D1%2B1&column=responses.status&column=zulu&column=none&column=reference", "").is(200, "").body
	if want = "responses.status,zulu,none,reference\r\n'=1+1,,," + first.text("reference") + "\r\n"; got != want {
		t.Errorf("chosen columns: got\n%s\nwant\n%s", got, want)
	}
	w.do("PATCH", campaign+"/responses/"+first.text("uuid"), `{"status":"=In review, 待处理"}`).is(200, "") // a status is free text
	if got = w.do("GET", list+"?status=%3DIn+review%2C%20%E5%BE%85%E5%A4%84%E7%90%86", "").is(200, "").body; !strings.Contains(got, `,"'=In review, 待处理",`) {
		t.Errorf("no status in %s", got)
	}
	completed := w.do("PATCH", campaign+"/responses/"+second.text("uuid"), `{"status":"completed"}`).is(200, "")
	got = w.do("GET", list+"?status=completed", "").is(200, "").body
	if !strings.Contains(got, ","+completed.text("updatedAt")+","+completed.text("completedAt")+",") {
		t.Errorf("no completedAt in %s", got)
	}
}

func TestExportNDJSON(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	want := ""
	for _, answers := range []string{`{}`, `{"a":{"value":["x\ny\u2028z","=1"]},"b":{"value":[]}}`} {
		made := w.respond(campaign, "ada@example.com", answers)
		want += w.do("GET", campaign+"/responses/"+made.text("uuid"), "").is(200, "").body + "\n"
	}
	if got := w.do("GET", campaign+"/responses.ndjson?order=asc", "").is(200, "").body; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// lines returns the lines of an export, without a table's header.
func (w *world) lines(path string) []string {
	w.tb.Helper()
	list := strings.SplitAfter(w.do("GET", path, "").is(200, "").body, "\n")
	if strings.Contains(path, ".csv") {
		list = list[1:]
	}
	return list[:len(list)-1]
}

// An export has the filters and orders of the list, and goes on after a cursor of a list or an export.
func TestExportCursors(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	for i := range 12 {
		// Each response has a module of its own, so all parts must have columns for all modules.
		made := w.respond(campaign, fmt.Sprintf("p%d@example.com", i%2), fmt.Sprintf(`{"m%d":{"value":["%d"]}}`, i, i))
		if i%3 == 0 {
			w.do("PATCH", campaign+"/responses/"+made.text("uuid"), `{"status":"validated"}`).is(200, "")
		}
	}
	for _, filter := range []string{"order=asc", "order=desc", "email=p1@example.com", "status=validated&status=other&order=asc", "reference=none"} {
		ids, next := w.page(campaign + "/responses?limit=3&" + filter)
		whole := w.total(campaign + "/responses?" + filter)
		for _, kind := range []string{".csv", ".ndjson"} {
			list := campaign + "/responses" + kind + "?" + filter
			all := w.lines(list)
			equal(t, len(all), whole, "%s: %d lines", list)
			for i, id := range ids {
				if rest := w.lines(list + "&cursor=" + id); !strings.Contains(all[i], id) || !slices.Equal(rest, all[i+1:]) {
					t.Errorf("%s after %s: line %s, then %d lines, want %d", list, id, all[i], len(rest), len(all)-i-1)
				}
			}
			if next != "" && !slices.Equal(w.lines(list+"&cursor="+next), all[3:]) {
				t.Errorf("%s: other lines after the first page", list)
			}
		}
	}
}

// An export accepts the cursors of its list, and of no other.
func TestExportRefusals(t *testing.T) {
	w := newWorld(t, nil)
	campaign, _ := w.pair()
	w.now = w.now.Add(time.Second)
	w.response(campaign)
	_, next := w.page(campaign + "/responses?limit=1")
	elsewhere, theirs := w.campaign(plainCampaign), w.campaign(plainCampaign, as(w.other.key))
	for _, kind := range []string{".csv", ".ndjson"} {
		list := "/responses" + kind + "?cursor="
		for _, cursor := range []string{"x", next[1:], "018f000000007000800000000000000a", next + "&order=asc", next + "&status=pending"} {
			w.do("GET", campaign+list+cursor, "").is(400, "invalid_cursor")
		}
		w.do("GET", elsewhere+list+next, "").is(400, "invalid_cursor")
		w.do("GET", theirs+list+next, "", as(w.other.key)).is(400, "invalid_cursor")
	}
}

func TestExportWithTooManyColumns(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	for i := range 11 {
		var list []formsvc.Answer
		for n := range 1000 {
			list = append(list, formsvc.Answer{Name: fmt.Sprint("m", i, "-", n)})
		}
		if i == 10 {
			list = list[:1]
			equal(t, len(w.lines(campaign+"/responses.csv")), 10, "%d rows of 10,000 columns")
		}
		w.respond(campaign, "ada@example.com", formsvc.NewAnswers(list...).JSON())
	}
	w.do("GET", campaign+"/responses.csv", "").is(422, "too_many_columns")
	w.do("GET", campaign+"/responses.csv?reference=none", "").is(200, "")
}

// An account gets a 32nd of the transfers for each export, half of them in all.
func TestExportsAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	w.response(campaign)
	list, open := campaign+"/responses.ndjson", 0
	var another func()
	another = func() {
		open++
		if open > 16 {
			w.do("GET", list, "").is(503, "too_many_transfers")
			return
		}
		w.api.ServeHTTP(&watched{httptest.NewRecorder(), another}, w.request("GET", list, ""))
	}
	another()
	equal(t, open, 17, "%d exports at once")
}

// WriteCSV and WriteNDJSON write the same bytes as the API.
func TestWriteExports(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	for n := range 40 {
		w.respond(campaign, fmt.Sprintf("p%d@example.com", n%2), fmt.Sprintf(`{"a%d":{"value":["=1,\"\r\n%s"]}}`, n%7, strings.Repeat("x", 3000)))
	}
	e := must(w.svc.Responses.Export(t.Context(), formsvc.ResponseQuery{
		AccountID: w.mine.account.ID, CampaignID: formsvc.ID(campaign[strings.LastIndexByte(campaign, '/')+1:]),
		Filter: formsvc.ResponseFilter{Email: "p1@example.com"},
	}))
	type write = func(context.Context, io.Writer, *formsvc.Export) error
	for kind, write := range map[string]write{".csv": httpx.WriteCSV, ".ndjson": httpx.WriteNDJSON} {
		var got bytes.Buffer
		err := write(t.Context(), &got, e)
		if want := w.do("GET", campaign+"/responses"+kind+"?email=p1@example.com", "").is(200, "").body; got.String() != want || err != nil {
			t.Errorf("%s: %v, %d bytes, want %d", kind, err, got.Len(), len(want))
		}
		in, out := io.Pipe()
		_ = in.CloseWithError(io.ErrShortWrite)
		if err := write(t.Context(), out, e); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%s: a writer that fails: %v", kind, err)
		}
	}
}

// Exports take conditions on answers, whose errors name the parameter.
func TestExportsByAnswer(t *testing.T) {
	w := newWorld(t, nil)
	list := w.campaign(`{"title":"Dinner","modules":[{"name":"a]ge","type":"number"},{"name":"meal","type":"choice","options":["Fish","Veg"]}]}`) + "/responses"
	for age, meal := range map[string]string{"9": "Fish", "18": "Veg", "30": "Fish"} {
		w.do("POST", list, `{"user":{"email":"ada@example.com"},"responses":{"a]ge":{"value":["`+age+`"]},"meal":{"value":["`+meal+`"]}}}`).is(201, "")
	}
	for query, want := range map[string]int{
		"answer[meal]=Fish": 2, "answer[meal]=Fish&answer[meal]=Veg": 3, "answerFrom[a]ge]=9.5&answerTo[a]ge]=30": 2, "answer[a]ge]=3e1": 1, "answer[meal]=": 3,
		"answer[meal]=Fish&answerTo[a]ge]=9&search=ada": 1, "answer[gone]=x": 0,
	} {
		got := string(w.do("GET", list+".ndjson?"+query, "").is(200, "").body)
		equal(t, strings.Count(got, "\n"), want, "%s finds %d", query)
	}
	for query, fault := range map[string]string{
		"answerFrom[a]ge]=x": "answerFrom[a]ge] invalid_number", "answerFrom[a]ge]=3&answerTo[a]ge]=2": "answerTo[a]ge] out_of_range", "answerTo[meal]=x": "answerTo[meal] not_applicable",
		"answerTo[meal]=x&answerTo[meal]=y": "answerTo[meal] repeated_parameter", "answer=x": "answer unknown_parameter", "answers[meal]=x": "answers[meal] unknown_parameter",
		strings.Repeat("answer[meal]=x&", 101): "answer[meal] too_many",
	} {
		w.do("GET", list+".csv?"+query, "").is(400, "invalid_parameter").faults(fault)
	}
	w.do("GET", list+"?answer[meal]=Fish", "").is(400, "invalid_parameter").faults("answer[meal] unknown_parameter")
}
