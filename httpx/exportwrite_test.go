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
	everywhere(t, func(t *testing.T, w *world) {
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
		for kind, writeTo := range map[string]func(b *bytes.Buffer, progress func(int)) error{
			".csv":    func(b *bytes.Buffer, progress func(int)) error { return httpx.WriteCSV(t.Context(), b, e, progress) },
			".ndjson": func(b *bytes.Buffer, progress func(int)) error { return httpx.WriteNDJSON(t.Context(), b, e, progress) },
		} {
			var b bytes.Buffer
			written := 0
			if err := writeTo(&b, func(n int) { written = n }); err != nil {
				t.Fatal(err)
			}
			want := w.do("GET", campaign+"/responses"+kind+"?order=asc&email=p1@example.com", "").is(200, "").body
			if b.String() != want || written != 20 {
				t.Errorf("%s: %d bytes of %d responses, want %d of 20", kind, b.Len(), written, len(want))
			}
		}
		full := errors.New("full")
		if err := httpx.WriteCSV(t.Context(), failing{full}, e, nil); !errors.Is(err, full) {
			t.Errorf("a writer that fails: %v", err)
		}
	})
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }
