package s3blob_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/s3blob"
)

// Store a blob in a bucket of any S3-compatible server, with the credentials of AWS's own tools.
func Example() {
	address := "s3://forms/uploads?endpoint=https://s3.example.com&region=eu-central-1"
	info, err := keep(context.Background(), address, s3blob.AWSCredentials())
	fmt.Println(info.Key, info.Size, err)
}

// keep stores a text and returns the blob's Info.
func keep(ctx context.Context, address string, credentials s3blob.Credentials) (blobstore.Info, error) {
	bucket, err := s3blob.ParseURL(address, nil)
	if err != nil {
		return blobstore.Info{}, err
	}
	store, err := s3blob.New(bucket, credentials, nil)
	if err != nil {
		return blobstore.Info{}, err
	}
	if _, err := store.Put(ctx, "c4/plan.txt", strings.NewReader("a flat roof")); err != nil {
		return blobstore.Info{}, err
	}
	return store.Stat(ctx, "c4/plan.txt")
}
