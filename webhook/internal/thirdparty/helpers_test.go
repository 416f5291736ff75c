package thirdparty_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

const (
	secret    = "whsec_5f1c0b9e4d7a42d3"
	messageID = "0193bb79-f340-7000-8000-000000000001"
	eventID   = messageID
	body      = `{"id":"` + eventID + `","event":"response.created","data":{"response":{"uuid":"r-1","status":"pending"}}}`
)

// sentAt is when the requests of these tests were sent.
var sentAt = time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC)

// at returns options that verify requests at that time.
func at(now time.Time) *webhook.Options {
	return &webhook.Options{Tolerance: 5 * time.Minute, Now: func() time.Time { return now }}
}

// begin returns the state of an event.
func begin(t *testing.T, d webhook.Deduper, id string) webhook.State {
	t.Helper()
	return must(d.Begin(t.Context(), id))
}

// post delivers content and returns the response with its body closed.
func post(t *testing.T, url, content string) *http.Response {
	t.Helper()
	r := must(http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(content)))
	r.Header = webhooktest.Header(secret, []byte(content))
	answer := must(http.DefaultClient.Do(r))
	_ = answer.Body.Close()
	return answer
}

// must returns the result of a call that can't fail here.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

// noError ends the test unless err is nil.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
