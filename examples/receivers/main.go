// Command receivers receives webhooks behind a router: net/http, chi, Gin or Echo. The routers differ in one line.
//
//	WEBHOOK_SECRETS=… go run . chi
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v5"

	"github.com/formsvc/toolkit/webhook"
)

func main() {
	// During a rotation, set the new and the old secret, separated by a space.
	handler, err := newHandler(strings.Join(os.Args[1:], " "), strings.Fields(os.Getenv("WEBHOOK_SECRETS")), receive)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:9000", Handler: handler, ReadTimeout: 30 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// newHandler returns the routes. It calls receive only for deliveries that are signed with one of the secrets, at most five
// minutes old, and not handled before.
func newHandler(router string, secrets []string, receive func(context.Context, webhook.Event) error) (http.Handler, error) {
	verifier, err := webhook.NewVerifier(secrets, &webhook.Options{
		Tolerance: 5 * time.Minute,
		Deduper:   webhook.NewMemoryDeduper(nil),
		OnReject:  func(_ *http.Request, err error) { log.Println("refused:", err) },
	})
	if err != nil {
		return nil, err
	}
	switch router {
	case "chi":
		router := chi.NewRouter()
		router.Method(http.MethodPost, "/hooks", verifier.EventHandler(receive))
		return router, nil
	case "gin":
		gin.SetMode(gin.ReleaseMode)
		router := gin.New()
		router.POST("/hooks", gin.WrapH(verifier.EventHandler(receive)))
		return router, nil
	case "echo":
		router := echo.New()
		router.POST("/hooks", echo.WrapHandler(verifier.EventHandler(receive)))
		return router, nil
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
