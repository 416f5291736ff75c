package s3blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/formsvc/toolkit/blobstore"
)

// pageSize is how many objects or uploads a server lists at once; S3 allows no more.
const pageSize = 1000

// List implements [blobstore.Store].
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[blobstore.Info, error] {
	return func(yield func(blobstore.Info, error) bool) {
		if blobstore.CheckKey(prefix) != nil && blobstore.CheckKey(prefix+"a") != nil {
			return // no key begins with it, and a server could interpret it differently
		}
		if err := s.list(ctx, prefix, yield); err != nil {
			wrap(&err, "list", prefix)
			yield(blobstore.Info{}, err)
		}
	}
}

// list returns nil if yield returns false.
func (s *Store) list(ctx context.Context, prefix string, yield func(blobstore.Info, error) bool) error {
	w := s.watch(ctx)
	defer w.end()
	opts := minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true, MaxKeys: pageSize, FetchOwner: new(bool)}
	for object := range s.core.ListObjectsIter(w.limited, s.bucket, opts) {
		w.timer.Stop()
		if object.Err != nil {
			return translate(ctx, w.limited, object.Err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		key, ours := strings.CutPrefix(object.Key, s.prefix)
		if ours && strings.HasPrefix(key, prefix) && blobstore.CheckKey(key) == nil {
			if !yield(blobstore.Info{Key: key, Size: object.Size, ModTime: object.LastModified}, nil) {
				return nil
			}
		}
		w.timer.Reset(w.timeout)
	}
	// At the end of its context the iterator ends without an error.
	return translate(ctx, w.limited, w.limited.Err())
}

// Delete implements [blobstore.Store]. It returns nil for a missing blob, unless the server reports
// that.
func (s *Store) Delete(ctx context.Context, key string) (err error) {
	defer wrap(&err, "delete", key)
	if err := cmp.Or(blobstore.CheckKey(key), ctx.Err()); err != nil {
		return err
	}
	return s.call(ctx, s.timeout, func(ctx context.Context) error {
		return s.core.RemoveObject(ctx, s.bucket, s.object(key), minio.RemoveObjectOptions{})
	})
}

// Clean implements [blobstore.Cleaner]: it aborts multipart uploads that began before.
func (s *Store) Clean(ctx context.Context, before time.Time) (aborted int, err error) {
	defer wrap(&err, "clean", s.prefix)
	var page minio.ListMultipartUploadsResult
	for {
		keyMarker, uploadMarker := page.NextKeyMarker, page.NextUploadIDMarker
		err := s.call(ctx, s.timeout, func(ctx context.Context) (err error) {
			page, err = s.core.ListMultipartUploads(ctx, s.bucket, s.prefix, keyMarker, uploadMarker, "", pageSize)
			return err
		})
		if err != nil {
			return aborted, err
		}
		for i := range page.Uploads {
			u := &page.Uploads[i]
			key, ours := strings.CutPrefix(u.Key, s.prefix)
			if !ours || blobstore.CheckKey(key) != nil || !u.Initiated.Before(before) {
				continue
			}
			err := s.call(ctx, s.timeout, func(ctx context.Context) error {
				return s.core.AbortMultipartUpload(ctx, s.bucket, u.Key, u.UploadID)
			})
			switch {
			case err == nil:
				aborted++
			case !errors.Is(err, fs.ErrNotExist) && answer(err).Code != minio.NoSuchUpload: // completed or aborted meanwhile
				return aborted, err
			}
		}
		if !page.IsTruncated {
			return aborted, nil
		}
		if page.NextKeyMarker == keyMarker && page.NextUploadIDMarker == uploadMarker {
			return aborted, fmt.Errorf("%w: the list of uploads does not go on", blobstore.ErrUnavailable)
		}
	}
}
