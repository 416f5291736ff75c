package httpx_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
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
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+path, strings.NewReader(formOf(filePart(noise(maxFile)))))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+w.mine.key)
		asForm(r)
		response, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.ProtoMajor != 2 || response.StatusCode != 404 || !strings.Contains(string(body), `"not_found"`) {
			t.Errorf("%s %d %s, %v", response.Proto, response.StatusCode, body, err)
		}
	}
	if fresh != 1 {
		t.Errorf("%d connections, want 1", fresh)
	}
}
