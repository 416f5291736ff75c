package httpx_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// fill creates n responses with as many bytes of text each.
func (w *world) fill(campaign string, n, bytes int) {
	w.tb.Helper()
	text := fmt.Sprintf("%x", noise(n*bytes/2)) // which can't be compressed to nothing
	for i := range n {
		w.respond(campaign, "ada@example.com", fmt.Sprintf(`{"text":{"value":[%q]}}`, text[i*bytes:][:bytes]))
	}
}

// A failure before the first byte gets a problem document, and one after it cuts the connection: an incomplete reply
// never looks complete.
func TestExportsThatFail(t *testing.T) {
	onEveryStore(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		w.fill(campaign, 40, 10_000)
		server := httptest.NewServer(w.api)
		defer server.Close()
		for _, kind := range []string{".ndjson", ".csv", ".xlsx", ".zip"} {
			path := campaign + "/responses" + kind
			pages := 0
			w.store.pages = func() error { pages++; return nil }
			status, whole, err := w.over(server, "GET", path, nil)
			if status != 200 || err != nil || pages < 3 {
				t.Fatalf("%s: %d, %v after %d pages", kind, status, err, pages)
			}
			cut := 0
			for fails := 1; fails <= pages; fails++ {
				page := 0
				w.store.pages = func() error {
					if page++; page == fails {
						return fmt.Errorf("page %d: %w", page, formsvc.ErrUnavailable)
					}
					return nil
				}
				status, body, err := w.over(server, "GET", path, nil)
				switch {
				case status == 503 && strings.Contains(body, `"unavailable"`) && err == nil:
				case status == 200 && errors.Is(err, io.ErrUnexpectedEOF) && len(body) < len(whole) && strings.HasPrefix(whole, body):
					cut++
				default:
					t.Errorf("%s: page %d fails: %d, %v, %d of %d bytes", kind, fails, status, err, len(body), len(whole))
				}
			}
			if cut == 0 {
				t.Errorf("%s: never cut, of %d pages", kind, pages)
			}
			w.store.pages = nil
		}
	})
}

// An export fails if a module is added after its columns were sent; it leaves no answer out.
func TestExportFailsOnModuleAddedMeanwhile(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	oldest := w.respond(campaign, "ada@example.com", `{}`).text("uuid")
	w.fill(campaign, 40, 10_000)
	newest := w.respond(campaign, "ada@example.com", `{}`).text("uuid")
	server := httptest.NewServer(w.api)
	defer server.Close()
	path := campaign + "/responses.csv"
	pages := 0
	w.store.pages = func() error { pages++; return nil }
	if status, _, err := w.over(server, "GET", path, nil); status != 200 || err != nil {
		t.Fatalf("%d, %v", status, err)
	}
	again := func(uuid, name string) (int, string, error) {
		// One page finds the newest response; half of the others are read for the columns.
		page := 0
		w.store.pages = func() error {
			if page++; page == 1+(pages-1)/2+1 {
				w.do("PATCH", campaign+"/responses/"+uuid, `{"responses":{"`+name+`":{"value":["x"]}}}`).is(200, "")
			}
			return nil
		}
		return w.over(server, "GET", path, nil)
	}
	if status, body, err := again(newest, "early"); status != 503 || err != nil || !strings.Contains(body, `"unavailable"`) {
		t.Errorf("before the first byte: %d, %v, %s", status, err, body)
	}
	if status, body, err := again(oldest, "late"); status != 200 || !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(body, oldest) {
		t.Errorf("after it: %d, %v, %d bytes", status, err, len(body))
	}
	w.store.pages = nil
	if status, body, err := w.over(server, "GET", path, nil); status != 200 || err != nil || !strings.HasPrefix(body, tableHeader+",early,late,text\r\n") {
		t.Errorf("the next: %d, %v", status, err)
	}
	path = campaign + "/responses.xlsx"
	if status, body, err := again(newest, "workbook"); status != 503 || err != nil {
		t.Errorf("a workbook: %d, %v, %d bytes", status, err, len(body))
	}
}

// over sends a request to a server and returns what arrived.
func (w *world) over(
	server *httptest.Server, method, path string, body io.Reader, edits ...func(*http.Request),
) (status int, got string, err error) {
	w.tb.Helper()
	r := must(http.NewRequestWithContext(w.tb.Context(), method, server.URL+path, body))
	r.Header.Set("Authorization", "Bearer "+w.mine.key)
	for _, edit := range edits {
		edit(r)
	}
	response, err := server.Client().Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	all, err := io.ReadAll(response.Body)
	return response.StatusCode, string(all), err
}
