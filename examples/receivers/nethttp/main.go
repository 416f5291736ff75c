// Command nethttp receives webhooks with net/http.
//
//	WEBHOOK_SECRETS=… go run ./nethttp
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

func main() {
	// During a rotation, set the new and the old secret, separated by a space.
	handler, err := newHandler(strings.Fields(os.Getenv("WEBHOOK_SECRETS")), receive)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:9000", Handler: handler, ReadTimeout: 30 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// newHandler returns the routes. It calls receive only for deliveries that are signed with one of the secrets, at most five
// minutes old, and not handled before.
func newHandler(secrets []string, receive func(context.Context, webhook.Event) error) (http.Handler, error) {
	verifier, err := webhook.NewVerifier(secrets, &webhook.Options{
		Tolerance: 5 * time.Minute,
		Deduper:   webhook.NewMemoryDeduper(nil),
		OnReject:  func(_ *http.Request, err error) { log.Println("refused:", err) },
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /hooks", verifier.EventHandler(receive))
	return mux, nil
}

// receive handles one event. If it returns nil, the status is 200; otherwise it is 500, and the service retries.
func receive(_ context.Context, e webhook.Event) error {
	log.Println(e.Type, e.Data.Response.Reference, "from", e.Data.Response.User.Email)
	return nil
}
