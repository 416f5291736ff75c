package httpx_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"
)

// Over HTTP/2 a refused upload is told why, although its body was not read, and its connection serves other requests.
func TestRefusedUploadKeepsHTTP2Connection(t *testing.T) {
	w := newWorld(t, nil)
	server := httptest.NewUnstartedServer(w.api)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	fresh := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if !info.Reused {
			fresh++
		}
	}})
	path := w.campaign(plainCampaign) + "/responses/00000000-0000-4000-8000-000000000000/files"
	for range 3 {
		r := must(http.NewRequestWithContext(ctx, http.MethodPost, server.URL+path, strings.NewReader(formOf(filePart(noise(maxFile))))))
		r.Header.Set("Authorization", "Bearer "+w.mine.key)
		asForm(r)
		response := must(server.Client().Do(r))
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.ProtoMajor != 2 || response.StatusCode != 404 || !strings.Contains(string(body), `"not_found"`) {
			t.Errorf("%s %d %s, %v", response.Proto, response.StatusCode, body, err)
		}
	}
	equal(t, fresh, 1, "%d connections")
}

// A stream that doesn't send its body ends soon, and the connection serves other streams.
func TestUnfinishedBodiesOverHTTP2(t *testing.T) {
	w := newWorld(t, nil)
	w.bare.SetBodyGrace(time.Millisecond)
	server := httptest.NewUnstartedServer(w.api)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	for range 3 {
		body, unfinished := io.Pipe()
		r := must(http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/v1/campaigns", body))
		r.Header.Set("Authorization", "Bearer "+w.mine.key)
		r.Header.Set("Content-Type", "application/json")
		response := must(server.Client().Do(r))
		_ = unfinished.Close()
		_ = response.Body.Close()
		if response.ProtoMajor != 2 || response.StatusCode != http.StatusRequestTimeout {
			t.Errorf("%s %d", response.Proto, response.StatusCode)
		}
	}
}
