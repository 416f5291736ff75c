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

// errSilent is why a request of ours was cancelled.
var errSilent = errors.New("no answer in time")

// translate gives the error of a request, made with the context limited, the
// meaning that it has in package blobstore. ctx is the caller's: when that has
// ended, its error is the answer.
func translate(ctx, limited context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	// These would tell the caller that it was his own context.
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

// meaning returns what an answer means, or nil where trying again may help.
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
	switch answer.StatusCode { // 404 is not among them: some servers say it of an access key too
	case http.StatusPreconditionFailed:
		return fs.ErrExist
	case http.StatusInsufficientStorage:
		return blobstore.ErrNoSpace
	}
	return nil
}

// noAnswer returns the error of a request that has nothing to say about whether
// a blob is there.
func noAnswer(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %v", blobstore.ErrUnavailable, err) //nolint:errorlint // see above
	}
	return err
}

// code returns the code of an answer, or "".
func code(err error) string {
	var answer minio.ErrorResponse
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

// passing reports whether an error may be gone at the next attempt: a failing
// server or connection, or a conflict.
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

// conflict reports whether another request was in the way of one: so it's said
// when a condition could not be judged, and by servers with directories when one
// came or went.
func conflict(err error) bool {
	var answer minio.ErrorResponse
	return errors.As(err, &answer) && answer.StatusCode == http.StatusConflict
}
