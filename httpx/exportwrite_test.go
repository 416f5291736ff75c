package httpx_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// WriteCSV and WriteNDJSON write the same bytes as the API.
func TestWriteExports(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	for n := range 40 {
		w.respond(campaign, fmt.Sprintf("p%d@example.com", n%2), fmt.Sprintf(`{"a%d":{"value":["=1,\"\r\n%s"]}}`, n%7, strings.Repeat("x", 3000)))
	}
	id := campaign[strings.LastIndexByte(campaign, '/')+1:]
	q := formsvc.ResponseQuery{
		AccountID: w.mine.account.ID, CampaignID: formsvc.ID(id), Filter: formsvc.ResponseFilter{Email: "p1@example.com"},
		Page: formsvc.PageQuery{Ascending: true},
	}
	e, err := w.svc.Responses.Export(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var csv, ndjson bytes.Buffer
	rows, lines := 0, 0
	err = errors.Join(httpx.WriteCSV(t.Context(), &csv, e, func(n int) { rows = n }), httpx.WriteNDJSON(t.Context(), &ndjson, e, func(n int) { lines = n }))
	for kind, got := range map[string]string{".csv": csv.String(), ".ndjson": ndjson.String()} {
		want := w.do("GET", campaign+"/responses"+kind+"?order=asc&email=p1@example.com", "").is(200, "").body
		if got != want || rows != 20 || lines != 20 || err != nil {
			t.Errorf("%s: %v, %d bytes, %d rows, %d lines; want %d bytes of 20", kind, err, len(got), rows, lines, len(want))
		}
	}
	full := errors.New("full")
	if err := httpx.WriteCSV(t.Context(), failing{full}, e, nil); !errors.Is(err, full) {
		t.Errorf("a writer that fails: %v", err)
	}
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }
