package httpx_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// discard is a ResponseWriter that costs almost nothing.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(status int)      { d.status = status }

// BenchmarkHandler measures the handler over the memory store, with a campaign of 50 responses.
func BenchmarkHandler(b *testing.B) {
	w := newWorld(b, nil)
	w.clock = time.Now // references are generated each millisecond
	var answers strings.Builder
	for i := range 10 {
		fmt.Fprintf(&answers, `,"question_%d":{"value":["an answer of usual length %d"]}`, i, i)
	}
	body := `{"user":{"email":"ada@example.com","firstName":"Ada","lastName":"Lovelace"},"responses":{` + answers.String()[1:] + `}}`
	list, one := w.campaign(plainCampaign)+"/responses", ""
	for range 50 {
		one = list + "/" + w.do("POST", list, body).is(201, "").text("uuid")
	}
	for _, row := range []struct {
		name, method, path, body string
		status                   int
	}{{"create", "POST", list, body, 201}, {"get", "GET", one, "", 200}, {"list", "GET", list, "", 200}} {
		b.Run(row.name, func(b *testing.B) {
			r, out := w.request(row.method, row.path, row.body), &discard{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				r.Body = io.NopCloser(bytes.NewReader([]byte(row.body)))
				clear(out.header)
				if w.api.ServeHTTP(out, r); out.status != row.status {
					b.Fatal(out.status)
				}
			}
		})
	}
}
