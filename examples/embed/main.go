// Command embed is the smallest server with the forms API in it: under /forms, with
// its data in the SQLite file forms.db, and webhooks delivered by the same process.
package main

import (
	"cmp"
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func main() {
	ctx := context.Background()
	store := must(sqlite.Open(ctx, "forms.db", nil))
	forms := must(formsvc.New(store, nil))
	api := must(httpx.New(forms, nil))
	engine := must(delivery.New(store, nil))
	printFirstKey(ctx, forms)
	http.Handle("/forms/", http.StripPrefix("/forms", api))
	go func() { log.Fatal(engine.Run(ctx)) }() // delivers webhooks
	go func() { log.Fatal(forms.Run(ctx)) }()  // deletes events older than 30 days; never responses
	server := &http.Server{Addr: cmp.Or(os.Getenv("ADDR"), "127.0.0.1:8080"), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// printFirstKey creates an account with a key, unless an earlier start did.
func printFirstKey(ctx context.Context, forms *formsvc.Service) {
	_, key, err := forms.Accounts.CreateWithKey(ctx, "example", formsvc.KeyInput{
		Name: "first", Permissions: formsvc.AllPermissions(),
	})
	if errors.Is(err, formsvc.ErrConflict) {
		return
	}
	log.Println("API key, shown once:", must(key, err).Value)
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
