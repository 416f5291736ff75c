package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/fileblob"
	"github.com/formsvc/toolkit/blobstore/s3blob"
	"github.com/formsvc/toolkit/formsvc"
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

// claimPatience is how long a server that starts waits for the place of files to answer.
const claimPatience = 10 * time.Second

// claimFiles makes sure, as far as the place for files can be reached, that it belongs to
// the database.
func (g *global) claimFiles(ctx context.Context, svc *formsvc.Service) error {
	ctx, cancel := context.WithTimeout(ctx, claimPatience)
	defer cancel()
	return g.explainBlobs(svc.Files.Claim(ctx, nil))
}

// explainBlobs says what to do about files that belong to another database.
func (g *global) explainBlobs(err error) error {
	if !errors.Is(err, formsvc.ErrOtherBlobs) {
		return err
	}
	return fmt.Errorf("--blobs: %w\n\nNothing was changed in %s.\n"+
		"  - A new database needs a place of its own for files: name another with --blobs.\n"+
		"  - To go on here with what the other database has, move its data too: formsvc copy --from DSN --to DSN\n"+
		"  - If the files are those of this database all the same, as with a backup from before it had an identity,\n"+
		"    remove %s there: they are looked at again then", err, g.placeOfFiles(), formsvc.MarkerKey)
}

// placeOfFiles names where files are.
func (g *global) placeOfFiles() string {
	dir, s3, _ := g.blobURL()
	switch {
	case s3 == nil:
		return "the directory " + dir
	case s3.Prefix == "":
		return "the bucket " + s3.Name
	}
	return "the bucket " + s3.Name + " below " + s3.Prefix + "/"
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
