package webhook_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// A complete receiver: the verifier, and a handler for each event.
func Example() {
	verifier, err := webhook.NewVerifier([]string{"whsec_5f1c0b9e4d7a42d3"}, nil)
	if err != nil {
		panic(err)
	}
	receive := func(_ context.Context, e webhook.Event) error {
		fmt.Println("received", e.Type)
		return nil
	}
	hooks := verifier.EventHandler(receive)
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

// Handle each type of event. If the handler returns an error, the service sends the event again.
func ExampleVerifier_EventHandler() {
	verifier, err := webhook.NewVerifier([]string{"secret"}, &webhook.Options{
		OnReject: func(_ *http.Request, err error) { fmt.Println("refused:", err) },
	})
	if err != nil {
		panic(err)
	}
	hooks := verifier.EventHandler(func(_ context.Context, e webhook.Event) error {
		r := e.Data.Response
		switch e.Type {
		case webhook.ResponseCreated:
			fmt.Println(r.User.Email, "wants the plan", r.Value("plan"))
		case webhook.ResponseStatusChanged:
			fmt.Println(r.Reference, "was", e.Data.PreviousStatus, "and is", r.Status)
		case webhook.FileUploaded:
			return errors.New("no room for files")
		default: // a type that came later: nothing to do
		}
		return nil
	})

	for _, payload := range []string{
		`{"event":"response.created","data":{"response":{"user":{"email":"ada@example.com"},"responses":{"plan":{"value":["big"]}}}}}`,
		`{"event":"response.status_changed","data":{"response":{"reference":"Q3XFQ-F6K2R","status":"validated"},"previousStatus":"pending"}}`,
		`{"event":"file.uploaded","data":{}}`,
	} {
		w := httptest.NewRecorder()
		hooks.ServeHTTP(w, webhooktest.NewRequest("secret", []byte(payload)))
		fmt.Println("answered", w.Code)
	}
	// Output:
	// ada@example.com wants the plan big
	// answered 200
	// Q3XFQ-F6K2R was pending and is validated
	// answered 200
	// refused: webhook: event was not handled: no room for files
	// answered 500
}

// A custom handler writes the HTTP response itself, for example in another framework.
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

// If a framework has read the body already, verify its bytes and the headers.
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

// While you change the secret, both are accepted; the index shows when the old one is no longer
// used.
func ExampleNewVerifier_rotation() {
	verifier, err := webhook.NewVerifier([]string{"new secret", "old secret"}, nil)
	if err != nil {
		panic(err)
	}
	d, err := verifier.VerifyRequest(nil, webhooktest.NewRequest("old secret", []byte("{}")))
	fmt.Println(d.SecretIndex, err)
	// Output: 1 <nil>
}

// A replayed request is refused once it is too old.
func Example_replayProtection() {
	verifier, err := webhook.NewVerifier([]string{"secret"}, &webhook.Options{Tolerance: 5 * time.Minute})
	if err != nil {
		panic(err)
	}
	payload := []byte(`{"id":"e-1","event":"response.created"}`)

	r := webhooktest.NewRequest("secret", payload)
	d, err := verifier.VerifyRequest(nil, r)
	fmt.Println(time.Since(d.SentAt) < time.Minute, err)

	webhook.SetSignatures(r.Header, "m-1", time.Now().Add(-time.Hour), payload, "secret")
	_, err = verifier.VerifyRequest(nil, r)
	fmt.Println(errors.Is(err, webhook.ErrTooOld), webhook.Status(err))
	// Output:
	// true <nil>
	// true 401
}

// The handler is called once, and the duplicate gets 200.
func ExampleMemoryDeduper() {
	verifier, err := webhook.NewVerifier([]string{"secret"}, &webhook.Options{Deduper: webhook.NewMemoryDeduper(nil)})
	if err != nil {
		panic(err)
	}
	hooks := verifier.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, _ := webhook.FromContext(r.Context())
		fmt.Println("handled", d.EventID)
	}))

	for range 2 {
		w := httptest.NewRecorder()
		hooks.ServeHTTP(w, webhooktest.NewRequest("secret", []byte(`{"id":"e-1","event":"response.created"}`)))
		fmt.Println("answered", w.Code)
	}
	// Output:
	// handled e-1
	// answered 200
	// answered 200
}

// The record of a handled event commits together with its effect, here a row in a table.
func ExampleSQLDeduper_Once() {
	_ = func(ctx context.Context, db *sql.DB, verifier *webhook.Verifier) (http.Handler, error) {
		dedupe, err := webhook.NewSQLDeduper(db, nil)
		if err != nil {
			return nil, err
		}
		if _, err := db.ExecContext(ctx, dedupe.Schema()); err != nil {
			return nil, err
		}
		return verifier.EventHandler(func(ctx context.Context, e webhook.Event) error {
			return dedupe.Once(ctx, e.ID, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "INSERT INTO granted (reference) VALUES ($1)", e.Data.Response.Reference)
				return err // and nothing is noted: the event comes again
			})
		}), nil
	}
}

// In the caller's own transaction, Reserve is one statement.
func ExampleSQLDeduper_Reserve() {
	var dedupe *webhook.SQLDeduper
	_ = func(ctx context.Context, tx *sql.Tx, e webhook.Event) error {
		fresh, err := dedupe.Reserve(ctx, tx, e.ID)
		if err != nil || !fresh {
			return err // nil for a repetition
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO granted (event) VALUES ($1)", e.ID)
		return err // the caller commits, or rolls back after an error
	}
}

// The signature that a receiver with a library of Standard Webhooks expects.
func ExampleSetSignatures() {
	at, h := time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC), http.Header{}
	webhook.SetSignatures(h, "m-1", at, []byte(`{"event":"response.created"}`), "whsec_c2VjcmV0")
	fmt.Println(h.Get(webhook.StandardSignatureHeader))
	// Output: v1,fTvNZ3Yuy+P3n3bXrYNonD4yvubtRc0LRJkO05YpV6o=
}

func ExampleSign() {
	fmt.Println(webhook.Sign("whsec_5f1c0b9e4d7a42d3", []byte(`{"event":"response.created"}`)))
	// Output: 0164b1b043cb1a9b45ffd3362637c1dca8113acfcaf6e78ce9ea8419fc656df2
}
