package s3blob

import (
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

// pageSize is how many objects, uploads or parts a server lists at once; S3
// allows no more.
const pageSize = 1000

// List implements [blobstore.Store].
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[blobstore.Info, error] {
	return func(yield func(blobstore.Info, error) bool) {
		if !beginsKey(prefix) {
			return
		}
		if err := s.list(ctx, prefix, yield); err != nil {
			yield(blobstore.Info{}, fmt.Errorf("s3blob: list %q: %w", prefix, err))
		}
	}
}

// beginsKey reports whether a key can begin with prefix: a server could interpret other prefixes
// differently.
func beginsKey(prefix string) bool {
	return blobstore.CheckKey(prefix) == nil || blobstore.CheckKey(prefix+"a") == nil
}

// list yields the blobs. It returns nil if yield returns false.
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
func (s *Store) Delete(ctx context.Context, key string) error {
	err := check(ctx, key)
	if err == nil {
		err = s.call(ctx, s.timeout, func(ctx context.Context) error {
			return s.core.RemoveObject(ctx, s.bucket, s.object(key), minio.RemoveObjectOptions{})
		})
	}
	if err != nil {
		return fmt.Errorf("s3blob: delete %s: %w", key, err)
	}
	return nil
}

// Clean implements [blobstore.Cleaner]: it aborts multipart uploads.
func (s *Store) Clean(ctx context.Context, before time.Time) (int, error) {
	n, err := s.clean(ctx, before)
	if err != nil {
		return n, fmt.Errorf("s3blob: clean: %w", err)
	}
	return n, nil
}

func (s *Store) clean(ctx context.Context, before time.Time) (int, error) {
	aborted := 0
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
			done, err := s.cleanUpload(ctx, &page.Uploads[i], before)
			if err != nil {
				return aborted, err
			}
			if done {
				aborted++
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

// cleanUpload aborts an upload if it is ours and inactive since before, and reports whether it did.
func (s *Store) cleanUpload(ctx context.Context, u *minio.ObjectMultipartInfo, before time.Time) (bool, error) {
	key, ours := strings.CutPrefix(u.Key, s.prefix)
	if !ours || blobstore.CheckKey(key) != nil || !u.Initiated.Before(before) {
		return false, nil
	}
	idle, err := s.idle(ctx, u, before)
	if err == nil && idle {
		err = s.call(ctx, s.timeout, func(ctx context.Context) error {
			return s.core.AbortMultipartUpload(ctx, s.bucket, u.Key, u.UploadID)
		})
	}
	if errors.Is(err, fs.ErrNotExist) || code(err) == minio.NoSuchUpload {
		return false, nil // it was completed or aborted meanwhile
	}
	return err == nil && idle, err
}

// idle reports whether an upload has no part newer than before.
func (s *Store) idle(ctx context.Context, u *minio.ObjectMultipartInfo, before time.Time) (bool, error) {
	for last := 0; ; {
		var page minio.ListObjectPartsResult
		err := s.call(ctx, s.timeout, func(ctx context.Context) (err error) {
			page, err = s.core.ListObjectParts(ctx, s.bucket, u.Key, u.UploadID, last, pageSize)
			return err
		})
		if err != nil {
			return false, err
		}
		for i := range page.ObjectParts {
			if !page.ObjectParts[i].LastModified.Before(before) {
				return false, nil
			}
		}
		if !page.IsTruncated || page.NextPartNumberMarker <= last {
			return true, nil
		}
		last = page.NextPartNumberMarker
	}
}
