package webhook_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// A whole receiver: the verifier, the handler, and a look at what came.
func Example() {
	verifier, err := webhook.NewVerifier([]string{"whsec_5f1c0b9e4d7a42d3"}, nil)
	if err != nil {
		panic(err)
	}
	hooks := verifier.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, _ := webhook.FromContext(r.Context())
		fmt.Println("received", d.Event)
	}))
	http.NewServeMux().Handle("/hooks", hooks)

	// What the service sends, and what somebody else might.
	payload := []byte(`{"id":"0193bb79-f340-7000-8000-000000000001","event":"response.created","data":{}}`)
	for _, secret := range []string{"whsec_5f1c0b9e4d7a42d3", "guessed"} {
		w := httptest.NewRecorder()
		hooks.ServeHTTP(w, webhooktest.NewRequest(secret, payload))
		fmt.Println("answered", w.Code)
	}
	// Output:
	// received response.created
	// answered 200
	// answered 401
}

// A handler of its own answers by itself, for example in another framework.
func ExampleVerifier_VerifyRequest() {
	verifier, err := webhook.NewVerifier([]string{"secret"}, nil)
	if err != nil {
		panic(err)
	}
	handle := func(w http.ResponseWriter, r *http.Request) {
		d, err := verifier.VerifyRequest(w, r)
		if err != nil {
			w.WriteHeader(webhook.Status(err))
			return
		}
		event, err := webhook.ParseEvent(d.Body)
		if err != nil {
			w.WriteHeader(webhook.Status(err))
			return
		}
		fmt.Println(event.Data.Response.Reference, "is", event.Data.Response.Status)
	}

	handle(httptest.NewRecorder(), webhooktest.NewRequest("secret",
		[]byte(`{"event":"response.created","data":{"response":{"reference":"R-7K3M-Q2","status":"pending"}}}`)))
	// Output: R-7K3M-Q2 is pending
}

// Where something else has read the body, its bytes and the headers are enough.
func ExampleVerifier_Verify() {
	verifier, err := webhook.NewVerifier([]string{"secret"}, nil)
	if err != nil {
		panic(err)
	}
	r := webhooktest.NewRequest("secret", []byte(`{"id":"e-1","event":"file.uploaded"}`))
	body, _ := io.ReadAll(r.Body)

	d, err := verifier.Verify(body, r.Header)
	fmt.Println(d.EventID, d.Event, err)

	_, err = verifier.Verify(append(body, ' '), r.Header)
	fmt.Println(errors.Is(err, webhook.ErrMismatch))
	// Output:
	// e-1 file.uploaded <nil>
	// true
}

// While the secret is being changed both are accepted, and the index tells when
// the old one is no longer used.
func ExampleNewVerifier_rotation() {
	verifier, err := webhook.NewVerifier([]string{"new secret", "old secret"}, nil)
	if err != nil {
		panic(err)
	}
	d, err := verifier.VerifyRequest(nil, webhooktest.NewRequest("old secret", []byte("{}")))
	fmt.Println(d.SecretIndex, err)
	// Output: 1 <nil>
}

func ExampleSign() {
	fmt.Println(webhook.Sign([]byte("whsec_5f1c0b9e4d7a42d3"), []byte(`{"event":"response.created"}`)))
	// Output: 0164b1b043cb1a9b45ffd3362637c1dca8113acfcaf6e78ce9ea8419fc656df2
}
