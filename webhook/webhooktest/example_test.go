package webhooktest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// Test a receiver: its handler gets a signed request.
func ExampleNewRequest() {
	verifier, err := webhook.NewVerifier([]string{"secret"}, nil)
	if err != nil {
		panic(err)
	}
	underTest := verifier.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, _ := webhook.FromContext(r.Context())
		fmt.Println(d.Event, d.EventID)
	}))

	w := httptest.NewRecorder()
	underTest.ServeHTTP(w, webhooktest.NewRequest("secret", []byte(`{"id":"e-1","event":"response.completed"}`)))
	fmt.Println(w.Code)
	// Output:
	// response.completed e-1
	// 200
}

// send represents the sender under test.
func send(_, _ string) {}

// Test a sender: the receiver fails once, so the sender must retry.
func ExampleReceiver() {
	_ = func(t *testing.T) {
		receiver := webhooktest.NewReceiver(t, []string{"secret"}, nil)
		receiver.Answer(webhooktest.Reply{Status: http.StatusServiceUnavailable})

		send(receiver.URL(), "secret")

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got, err := receiver.Wait(ctx, 2)
		if err != nil {
			t.Fatal(err)
		}
		if got[0].Delivery.EventID != got[1].Delivery.EventID {
			t.Error("the retry is another event")
		}
	}
}
