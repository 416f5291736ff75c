package s3blob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/formsvc/toolkit/blobstore"
)

// errSilent is the cause of a request that was canceled because the server was silent.
var errSilent = errors.New("no answer in time")

// translate translates the error of a request, made with the context limited, to one of package
// blobstore. ctx is the caller's: if it has ended, translate returns its error.
func translate(ctx, limited context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	// These would look like the error of the caller's own context.
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		if errors.Is(context.Cause(limited), errSilent) {
			err = errSilent
		}
		return fmt.Errorf("%w: %v", blobstore.ErrUnavailable, err) //nolint:errorlint // see above
	}
	a := answer(err)
	if a.Code != "" {
		err = fmt.Errorf("%s (%d): %w", a.Code, a.StatusCode, err)
	}
	return fmt.Errorf("%w: %w", meaning(&a), err)
}

// wrap adds what a method does to its error.
func wrap(err *error, what, name string) {
	if *err != nil {
		*err = fmt.Errorf("s3blob: %s %q: %w", what, name, *err)
	}
}

// answer returns the server's response that err is about, or an empty one.
func answer(err error) (a minio.ErrorResponse) {
	errors.As(err, &a)
	return a
}

// meaning returns the error for a response.
func meaning(a *minio.ErrorResponse) error {
	switch a.Code {
	case minio.NoSuchBucket, minio.NoSuchUpload:
		return blobstore.ErrUnavailable
	case minio.NoSuchKey:
		return fs.ErrNotExist
	case minio.PreconditionFailed:
		return fs.ErrExist
	case "QuotaExceeded", "InsufficientStorage", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded":
		return blobstore.ErrNoSpace
	}
	switch a.StatusCode { // without 404: some servers also use it for an access key
	case http.StatusPreconditionFailed:
		return fs.ErrExist
	case http.StatusInsufficientStorage:
		return blobstore.ErrNoSpace
	}
	return blobstore.ErrUnavailable
}

// noAnswer returns the error of a request that doesn't show whether a blob exists.
func noAnswer(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %v", blobstore.ErrUnavailable, err) //nolint:errorlint // see above
	}
	return err
}

// passing reports whether an error may be temporary: a failing server or connection, or a conflict.
func passing(err error) bool {
	a := answer(err)
	switch a.StatusCode {
	case http.StatusNotImplemented, http.StatusInsufficientStorage:
		return false
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusConflict:
		return true
	}
	return a.Code == "" || a.Code == "RequestTimeout" || a.StatusCode >= 500
}

// conflict reports whether a concurrent request caused the error: a condition could not be
// evaluated or, on servers with directories, one was created or removed.
func conflict(err error) bool { return answer(err).StatusCode == http.StatusConflict }
