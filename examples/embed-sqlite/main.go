// Command embed-sqlite mounts the forms API under /forms in a server of its own, with
// files, on SQLite. When interrupted, it shuts down gracefully: it finishes the requests
// and deliveries in flight first.
package main

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
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
	if err == nil {
		err = run(ctx, l, "forms")
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, l net.Listener, dir string) (err error) {
	files, err := fileblob.Open(dir + "/files")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	store, err := sqlite.Open(ctx, dir+"/forms.db", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
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
	mux := http.NewServeMux()
	mux.Handle("/forms/", http.StripPrefix("/forms", api))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}

	var background sync.WaitGroup
	defer background.Wait()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()                                      // after the last request
	background.Go(func() { _ = engine.Run(running) }) // delivers webhooks; its error is always nil
	background.Go(func() { _ = forms.Run(running) })  // deletes old events; its error is always nil, too

	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		return server.Shutdown(context.WithoutCancel(ctx)) // waits for requests in flight
	}
}
