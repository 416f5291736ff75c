// Command custom-blobstore encrypts uploaded files. Its blob store (sealed.go) wraps
// another one and passes blobtest.
//
//	FILES_KEY=$(openssl rand -hex 32) go run ./examples/custom-blobstore
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/formsvc/toolkit/blobstore/fileblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/storage/sqlite"
)

func main() {
	store, err := sqlite.Open(context.Background(), "forms.db", nil)
	if err != nil {
		log.Fatal(err)
	}
	api, err := newAPI(store, "files", os.Getenv("FILES_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: api, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// newAPI returns the API on a store, with the files sealed in a directory.
func newAPI(store formsvc.Store, dir, key string) (http.Handler, error) {
	files, err := fileblob.Open(dir)
	if err != nil {
		return nil, err
	}
	blobs, err := newSealed(files, key)
	if err != nil {
		return nil, err
	}
	forms, err := formsvc.New(store, &formsvc.Options{Blobs: blobs})
	if err != nil {
		return nil, err
	}
	return httpx.New(forms, nil)
}
