// Command embed-sqlite mounts the forms API in a server of its own, under
// /forms, on a SQLite file, and delivers webhooks from the same process.
package main

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/formsvc/toolkit/blobstore/fileblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, l, "forms.db"); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, l net.Listener, path string) (err error) {
	store, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	files, err := fileblob.Open(path+"-files", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	forms, err := formsvc.New(store, &formsvc.Options{Blobs: files})
	if err != nil {
		return err
	}
	api, err := httpx.New(forms, nil)
	if err != nil {
		return err
	}
	engine, err := delivery.New(store, nil)
	if err != nil {
		return err
	}
	if err := firstKey(ctx, forms); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/forms/", http.StripPrefix("/forms", api))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })
	go func() { _ = server.Serve(l) }()
	return engine.Run(ctx) // until ctx ends
}

// firstKey makes an account on the first start and prints its key.
func firstKey(ctx context.Context, forms *formsvc.Service) error {
	_, _, key, err := forms.Accounts.CreateWithKey(ctx, "example", formsvc.KeyInput{
		Name: "first", Permissions: formsvc.AllPermissions(),
	})
	if errors.Is(err, formsvc.ErrConflict) {
		return nil
	}
	log.Println("API key, shown once:", key)
	return err
}
