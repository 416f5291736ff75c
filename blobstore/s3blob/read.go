package s3blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/formsvc/toolkit/blobstore"
)

// Stat implements [blobstore.Store]. If there is no such blob, Stat and Open also check whether the
// bucket exists: if not, they fail with [blobstore.ErrUnavailable].
func (s *Store) Stat(ctx context.Context, key string) (_ blobstore.Info, err error) {
	defer wrap(&err, "stat", key)
	if err := cmp.Or(blobstore.CheckKey(key), ctx.Err()); err != nil {
		return blobstore.Info{}, err
	}
	object, err := s.head(ctx, key)
	if err != nil {
		return blobstore.Info{}, s.missing(ctx, err)
	}
	return blobstore.Info{Key: key, Size: object.Size, ModTime: object.LastModified}, nil
}

// object returns the name of a blob's object.
func (s *Store) object(key string) string { return s.prefix + key }

func (s *Store) head(ctx context.Context, key string) (object minio.ObjectInfo, err error) {
	err = s.call(ctx, s.timeout, func(ctx context.Context) (err error) {
		object, err = s.core.StatObject(ctx, s.bucket, s.object(key), minio.StatObjectOptions{})
		return err
	})
	return object, err
}

// missing returns the error of a request for a blob. It returns fs.ErrNotExist only if the bucket
// exists: servers also report a missing blob for a missing bucket or a wrong access key, and so may
// a server that isn't S3.
func (s *Store) missing(ctx context.Context, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var found bool
	bucketErr := s.call(ctx, s.timeout, func(ctx context.Context) (err error) {
		found, err = s.core.BucketExists(ctx, s.bucket)
		return err
	})
	if bucketErr == nil && !found {
		bucketErr = fmt.Errorf("%w: no bucket %s", blobstore.ErrUnavailable, s.bucket)
	}
	return cmp.Or(bucketErr, err)
}

// Open implements [blobstore.Store]. It makes one request, whose response is read. If the
// connection breaks or the server is silent for longer than [Options.Timeout], reading fails with
// [blobstore.ErrUnavailable].
func (s *Store) Open(ctx context.Context, key string, offset, length int64) (_ io.ReadCloser, _ blobstore.Info, err error) {
	defer wrap(&err, "open", key)
	if err := cmp.Or(blobstore.CheckKey(key), ctx.Err()); err != nil {
		return nil, blobstore.Info{}, err
	}
	if offset < 0 {
		return nil, blobstore.Info{}, fmt.Errorf("offset %d: %w", offset, fs.ErrInvalid)
	}
	if length != 0 {
		r, info, err := s.get(ctx, key, offset, length)
		switch a := answer(err); {
		case err == nil:
			return r, info, nil
		case a.Code != minio.InvalidRange && a.StatusCode != http.StatusRequestedRangeNotSatisfiable:
			return nil, blobstore.Info{}, s.missing(ctx, err)
		}
	}
	// The range is empty, or the server says that it's beyond the end.
	info, err := s.Stat(ctx, key)
	if err == nil && length != 0 && offset < info.Size {
		err = fmt.Errorf("%w: no range at %d of %d bytes", blobstore.ErrUnavailable, offset, info.Size)
	}
	if err != nil {
		return nil, blobstore.Info{}, err
	}
	return io.NopCloser(strings.NewReader("")), info, nil
}

// get requests a part of an object.
func (s *Store) get(ctx context.Context, key string, offset, length int64) (*reader, blobstore.Info, error) {
	var opts minio.GetObjectOptions
	ranged := offset > 0 || length > 0
	switch {
	case length > 0 && length <= math.MaxInt64-offset:
		opts.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	case ranged:
		opts.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	w := s.watch(ctx)
	body, object, header, err := s.core.GetObject(w.limited, s.bucket, s.object(key), opts)
	w.timer.Stop()
	if err != nil {
		w.end()
		return nil, blobstore.Info{}, translate(ctx, w.limited, err)
	}
	info := blobstore.Info{Key: key, Size: object.Size, ModTime: object.LastModified}
	left := object.Size
	if ranged {
		info.Size, left, err = readContentRange(header.Get("Content-Range"), offset)
	}
	if err == nil && (left < 0 || left != object.Size || length > 0 && left > length) {
		err = fmt.Errorf("%w: an answer of %d bytes", blobstore.ErrUnavailable, object.Size)
	}
	if err != nil {
		w.end()
		_ = body.Close()
		return nil, blobstore.Info{}, err
	}
	return &reader{watch: w, body: body, left: left}, info, nil
}

// readContentRange parses a header such as "bytes 5-9/20". It returns the size of the object and
// the length of the response, which must begin at the offset.
func readContentRange(header string, offset int64) (size, length int64, err error) {
	var from, to int64
	_, err = fmt.Sscanf(header, "bytes %d-%d/%d", &from, &to, &size)
	if err != nil || from != offset || to < from || to >= size {
		return 0, 0, fmt.Errorf("%w: an answer to the range at %d with %q", blobstore.ErrUnavailable, offset, header)
	}
	return size, to - from + 1, nil
}

// A watch cancels requests when the server is silent for too long.
type watch struct {
	ctx     context.Context // the caller's
	limited context.Context // of the requests
	cancel  context.CancelCauseFunc
	timer   *time.Timer // runs while waiting for the server
	timeout time.Duration
}

// watch starts to wait for the server.
func (s *Store) watch(ctx context.Context) *watch {
	w := &watch{ctx: ctx, timeout: s.timeout}
	w.limited, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(w.timeout, func() { w.cancel(errSilent) })
	return w
}

func (w *watch) end() {
	w.timer.Stop()
	w.cancel(nil)
}

// A reader reads the body of a response.
type reader struct {
	*watch

	body io.ReadCloser
	left int64
	err  error
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if r.err == nil {
		r.err = r.ctx.Err()
	}
	if r.err == nil && r.left == 0 {
		r.err = io.EOF
	}
	if r.err != nil {
		return 0, r.err
	}
	r.timer.Reset(r.timeout)
	n, err := r.body.Read(p[:min(int64(len(p)), r.left)])
	r.timer.Stop()
	r.left -= int64(n)
	switch {
	case r.left == 0:
		r.err = io.EOF
	case err == io.EOF: //nolint:errorlint // an io.Reader's end is io.EOF itself
		r.err = io.ErrUnexpectedEOF
	case err != nil:
		// A broken connection says nothing about the blob, so this isn't io.ErrUnexpectedEOF,
		// unlike in package http.
		err = translate(r.ctx, r.limited, err)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("%w: the connection broke", blobstore.ErrUnavailable)
		}
		r.err = fmt.Errorf("s3blob: read: %w", err)
	}
	return n, r.err
}

// Close implements io.Closer.
func (r *reader) Close() error {
	r.end()
	return r.body.Close()
}
