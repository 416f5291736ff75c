package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/fileblob"
	"github.com/formsvc/toolkit/blobstore/s3blob"
)

// blobs is what the commands need of either blob store.
type blobs interface {
	blobstore.Store
	Close() error
}

// bucket is a blob store without anything to close.
type bucket struct{ *s3blob.Store }

// Close implements blobs.
func (bucket) Close() error { return nil }

// blobURL returns the blob store of the flags: a directory, or a bucket.
func (g *global) blobURL() (dir string, s3 *s3blob.Bucket, err error) {
	if g.Blobs == "" {
		return filepath.Join(g.Data, "files"), nil, nil
	}
	scheme, rest, _ := strings.Cut(g.Blobs, ":")
	switch scheme {
	case "file":
		if rest == "" {
			return "", nil, usageError{errors.New("--blobs: file: needs a directory, such as file:forms-files")}
		}
		return filepath.Clean(rest), nil, nil
	case "s3":
		c, err := s3blob.ParseURL(g.Blobs, os.Getenv)
		if err != nil {
			return "", nil, usageError{fmt.Errorf("--blobs: %w", err)}
		}
		return "", &c, nil
	}
	return "", nil, usageError{fmt.Errorf("--blobs: want file:DIR or s3://…, got the scheme %q", scheme)}
}

// openBlobs opens the blob store of the flags. A directory is made if missing; a
// bucket is not asked anything yet.
func (g *global) openBlobs() (blobs, error) {
	dir, s3, err := g.blobURL()
	if err != nil {
		return nil, err
	}
	if g.Blobs == "" {
		if err := os.MkdirAll(g.Data, 0o700); err != nil {
			return nil, fmt.Errorf("--data: %w", err)
		}
	}
	if s3 == nil {
		s, err := fileblob.Open(dir, nil)
		if err != nil {
			return nil, fmt.Errorf("--blobs: %w", err)
		}
		return s, nil
	}
	s, err := s3blob.New(*s3, s3blob.AWSCredentials(), nil)
	if err != nil {
		return nil, usageError{fmt.Errorf("--blobs: %w", err)}
	}
	return bucket{s}, nil
}
