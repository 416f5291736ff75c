package httpx_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/httpx"
)

// Calls reuse buffers; no data of one request appears in another.
func TestReusedCallsShareNoData(t *testing.T) {
	w := newWorld(t, nil)
	list := w.campaign(plainCampaign) + "/responses"
	var group []chan error
	for g := range 8 {
		done := make(chan error, 1)
		group = append(group, done)
		go func() { done <- mixed(w, list, g) }()
	}
	for _, done := range group {
		noError(t, <-done)
	}
}

func mixed(w *world, list string, g int) error {
	for i := range 20 {
		mark := strings.Repeat(fmt.Sprintf("%d-%d ", g, i), 1+i%7*20)
		for _, body := range []string{`{"user":{"x":"` + mark, answers(`{"a":{"value":["` + mark + `"]}}`)} {
			recorder := httptest.NewRecorder()
			w.api.ServeHTTP(recorder, w.request("POST", list, body))
			if recorder.Code == 201 && !strings.Contains(recorder.Body.String(), `["`+mark+`"]`) {
				return fmt.Errorf("%s is not in %s", mark, recorder.Body)
			}
			if recorder.Code != 201 && recorder.Code != 400 {
				return fmt.Errorf("%d: %s", recorder.Code, recorder.Body)
			}
		}
	}
	return nil
}

// C1, C4, C5, C10: behaviour that needs a real connection.
func TestOverTCP(t *testing.T) {
	w := newWorld(t, nil)
	w.bare.SetLimits(func(l *httpx.Limits) { l.Body = 1000 })
	server := httptest.NewServer(w.api)
	defer server.Close()
	before := w.total("/v1/campaigns")
	head := "POST /v1/campaigns HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.mine.key + "\r\nContent-Type: application/json\r\n"
	long := strings.Repeat(" ", 2000)
	for _, row := range []struct {
		name, request, status, contains string
	}{
		{"chunked over the limit", head + "Transfer-Encoding: chunked\r\n\r\n7d0\r\n" + long + "\r\n0\r\n\r\n", "413", "Connection: close"},
		{"announced over the limit", head + "Content-Length: 2000\r\n\r\n" + long, "413", "Connection: close"},
		{"cut short", head + "Content-Length: 100\r\n\r\n" + plainCampaign, "400", "body_incomplete"},
		{"bad chunk", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + plainCampaign + "\r\n0\r\n\r\n", "400", "body_incomplete"},
		{"no length", head + "\r\n", "400", "empty_body"},
	} {
		answer := exchange(t, server, row.request, true)
		if !strings.HasPrefix(answer, "HTTP/1.1 "+row.status) || !strings.Contains(answer, row.contains) {
			t.Errorf("%s: %s", row.name, answer)
		}
	}
	equal(t, w.total("/v1/campaigns"), before, "%d campaigns")
	good := head + "Content-Length: " + fmt.Sprint(len(plainCampaign)) + "\r\n\r\n" + plainCampaign
	last := strings.Replace(good, "Host: x", "Host: x\r\nConnection: close", 1)
	many := exchange(t, server, strings.Repeat(good, 9)+last, false)
	equal(t, strings.Count(many, "HTTP/1.1 201"), 10, "%d of 10 pipelined requests answered")
}
