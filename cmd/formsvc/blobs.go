package main

import (
	"cmp"
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
		c, err := s3blob.ParseURL(g.Blobs, g.Env.get)
		if err != nil {
			return "", nil, usageError{fmt.Errorf("--blobs: %w", err)}
		}
		return "", &c, nil
	}
	return "", nil, usageError{fmt.Errorf("--blobs: unknown scheme %q; use file:DIR or s3://…", scheme)}
}

// claimPatience limits how long a starting server waits for the blob store.
const claimPatience = 10 * time.Second

// claimFiles checks that the blob store belongs to the database, if it is reachable.
func (g *global) claimFiles(ctx context.Context, svc *formsvc.Service) error {
	ctx, cancel := context.WithTimeout(ctx, claimPatience)
	defer cancel()
	return g.explainBlobs(svc.Files.Claim(ctx, nil))
}

// explainBlobs adds to an error about files of another database what to do about it.
func (g *global) explainBlobs(err error) error {
	if !errors.Is(err, formsvc.ErrOtherBlobs) {
		return err
	}
	dir, _, _ := g.blobURL()
	return fmt.Errorf("--blobs: %w\n\nNothing was changed in %s.\n"+
		"  - A new database needs its own place for files: set --blobs to another one.\n"+
		"  - To continue with the data of the other database, move that too: formsvc copy --from DSN --to DSN\n"+
		"  - If there is a %s but the files do belong to this database, for example to a backup from before it had\n"+
		"    an identity, remove that file: the files are then checked again", err, cmp.Or(g.Blobs, dir), formsvc.MarkerKey)
}

// openBlobs opens the blob store of the flags. A missing directory is created, and kept open until the process ends; a bucket is not
// accessed yet.
func (g *global) openBlobs() (blobstore.Store, error) {
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
		s, err := fileblob.Open(dir)
		if err != nil {
			return nil, fmt.Errorf("--blobs: %w", err)
		}
		return s, nil
	}
	s, err := s3blob.New(*s3, s3blob.AWSCredentials(), nil)
	if err != nil {
		return nil, usageError{fmt.Errorf("--blobs: %w", err)}
	}
	return s, nil
}
