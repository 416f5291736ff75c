// Command receive-webhook prints the events it receives, having checked their
// signature. It imports package webhook and nothing else of this module.
//
//	WEBHOOK_SECRET=… go run ./examples/receive-webhook
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

func main() {
	handler, err := receiver(os.Getenv("WEBHOOK_SECRET"), os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:9000", Handler: handler, ReadTimeout: 30 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// receiver returns a handler that lets only signed requests through.
func receiver(secret string, out io.Writer) (http.Handler, error) {
	verifier, err := webhook.NewVerifier([]string{secret}, nil)
	if err != nil {
		return nil, err
	}
	return verifier.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, _ := webhook.FromContext(r.Context())
		event, err := webhook.ParseEvent(d.Body)
		if err != nil {
			http.Error(w, "not an event", http.StatusBadRequest)
			return
		}
		// The same event can come twice: event.ID is what to remember.
		_, _ = fmt.Fprintf(out, "%s %s from %s\n", event.Type, event.Data.Response.Reference, event.Data.Response.User.Email)
		w.WriteHeader(http.StatusOK)
	})), nil
}
