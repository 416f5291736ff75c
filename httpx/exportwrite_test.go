package httpx_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	e, err := w.svc.Responses.Export(t.Context(), formsvc.ResponseQuery{
		AccountID: w.mine.account.ID, CampaignID: formsvc.ID(campaign[strings.LastIndexByte(campaign, '/')+1:]),
		Filter: formsvc.ResponseFilter{Email: "p1@example.com"},
	})
	if err != nil {
		t.Fatal(err)
	}
	type write = func(context.Context, io.Writer, *formsvc.Export, func(int)) error
	for kind, write := range map[string]write{".csv": httpx.WriteCSV, ".ndjson": httpx.WriteNDJSON} {
		var got bytes.Buffer
		last := 0
		err := write(t.Context(), &got, e, func(n int) { last = n })
		if want := w.do("GET", campaign+"/responses"+kind+"?email=p1@example.com", "").is(200, "").body; got.String() != want || last != 20 || err != nil {
			t.Errorf("%s: %v, %d bytes of %d; want %d bytes of 20", kind, err, got.Len(), last, len(want))
		}
		in, out := io.Pipe()
		_ = in.CloseWithError(io.ErrShortWrite)
		if err := write(t.Context(), out, e, nil); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%s: a writer that fails: %v", kind, err)
		}
	}
}
