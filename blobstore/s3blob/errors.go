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
	var answer minio.ErrorResponse
	if errors.As(err, &answer) {
		if meaning := meaning(&answer); meaning != nil {
			return fmt.Errorf("%w: %w", meaning, err)
		}
		return fmt.Errorf("%w: %s (%d): %w", blobstore.ErrUnavailable, answer.Code, answer.StatusCode, err)
	}
	return fmt.Errorf("%w: %w", blobstore.ErrUnavailable, err)
}

// meaning returns the error for an HTTP response, or nil if a retry may help.
func meaning(answer *minio.ErrorResponse) error {
	switch answer.Code {
	case minio.NoSuchBucket, minio.NoSuchUpload:
		return nil
	case minio.NoSuchKey:
		return fs.ErrNotExist
	case minio.PreconditionFailed:
		return fs.ErrExist
	case "QuotaExceeded", "InsufficientStorage", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded":
		return blobstore.ErrNoSpace
	}
	switch answer.StatusCode { // without 404: some servers also use it for an access key
	case http.StatusPreconditionFailed:
		return fs.ErrExist
	case http.StatusInsufficientStorage:
		return blobstore.ErrNoSpace
	}
	return nil
}

// noAnswer returns the error of a request that doesn't show whether a blob exists.
func noAnswer(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %v", blobstore.ErrUnavailable, err) //nolint:errorlint // see above
	}
	return err
}

// code returns the S3 error code of err, or "".
func code(err error) string {
	var answer minio.ErrorResponse
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

// passing reports whether an error may be temporary: a failing server or connection, or a conflict.
func passing(err error) bool {
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) {
		return true
	}
	switch answer.StatusCode {
	case http.StatusNotImplemented, http.StatusInsufficientStorage:
		return false
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	}
	return answer.StatusCode >= 500 || answer.Code == "RequestTimeout" || conflict(err)
}

// conflict reports whether a concurrent request caused the error: a condition could not be
// evaluated or, on servers with directories, one was created or removed.
func conflict(err error) bool {
	var answer minio.ErrorResponse
	return errors.As(err, &answer) && answer.StatusCode == http.StatusConflict
}
