package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

func TestOnlySignedRequestsGetThrough(t *testing.T) {
	var out bytes.Buffer
	handler, err := receiver("a secret of the webhook", &out)
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"id":"1","event":"response.created","data":{"response":{"reference":"K7XMT-4QRTW","user":{"email":"a@example.com"}}}}`)
	for secret, want := range map[string]int{"a secret of the webhook": http.StatusOK, "another secret": http.StatusUnauthorized} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, webhooktest.NewRequest(secret, body))
		if w.Code != want {
			t.Errorf("status %d, want %d", w.Code, want)
		}
	}
	if got := out.String(); got != "response.created K7XMT-4QRTW from a@example.com\n" {
		t.Errorf("printed %q", got)
	}
}
