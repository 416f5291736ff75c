// Package blobstore is the contract of what keeps the bytes of files: blobs
// under keys, written once and never changed. The packages below it are
// implementations: fileblob keeps blobs in a directory, s3blob in a bucket of
// an S3-compatible server, memblob in memory. Package blobtest holds any
// implementation to the contract.
//
// Who a blob belongs to, what it is called and what hash it has is known
// elsewhere; here are only bytes. One blob is no file's: package formsvc keeps under
// formsvc.MarkerKey which database the others belong to.
package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"time"
)

// Failures beside those of package io/fs; ask with [errors.Is].
var (
	// ErrUnavailable means that the store could not answer now: its server is
	// down, slow or refuses us. Trying again may help.
	ErrUnavailable = errors.New("blob store unavailable")
	// ErrNoSpace means that there is no room for another blob.
	ErrNoSpace = errors.New("no space left for blobs")
)

// An Info says what is known of a blob without reading it.
type Info struct {
	Key     string
	Size    int64     // bytes
	ModTime time.Time // when the blob became visible, or a little earlier, by the clock of the store
}

// A Store keeps blobs. Its methods are safe for concurrent use. A context that
// ends stops them; they return its error then.
//
// A key that [CheckKey] refuses is an error that is fs.ErrInvalid. A store that
// cannot answer within the time that it has set itself fails with
// [ErrUnavailable]; none waits for ever.
type Store interface {
	// Put stores all that r yields under a key that is free, and returns how many
	// bytes that is. The blob is visible as a whole and durable when Put returns
	// nil. When it fails no blob is visible, unless the answer of a server was
	// lost, and the error is r's own if reading failed. r is read until io.EOF; it
	// may be read from another goroutine, but not after Put returned.
	// fs.ErrExist: the key is taken; also for all but one of several Puts at once.
	Put(ctx context.Context, key string, r io.Reader) (int64, error)
	// Open returns length bytes of a blob, beginning at the byte offset, and what
	// Stat says. A negative length means up to the end. What lies beyond the end
	// is left out, so that the reader may be at its end from the start; offset
	// must not be negative. The context also ends reading. A blob that turns out
	// shorter than Info says fails with io.ErrUnexpectedEOF; a read that fails
	// never looks like the end. Whoever opened closes. fs.ErrNotExist.
	Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, Info, error)
	// Stat returns what is known of a blob. fs.ErrNotExist.
	Stat(ctx context.Context, key string) (Info, error)
	// List returns the blobs whose keys begin with the prefix, each once, in any
	// order; blobs that come or go meanwhile may be among them or not. After an
	// error nothing follows: what came before is then not all there is. What is
	// in the store, but not under a valid key, is left out.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]
	// Delete removes a blob. fs.ErrNotExist where the store can tell; a store that
	// can't returns nil.
	Delete(ctx context.Context, key string) error
}

// A Cleaner is a [Store] in which a Put that was cut off, by the end of the
// process for example, leaves something behind that is not a blob.
type Cleaner interface {
	// Clean removes what Puts left behind that have not gone on since the time
	// before, and returns how many. A Put that comes back to life after that
	// fails.
	Clean(ctx context.Context, before time.Time) (int, error)
}

// MaxKey is how long a key may be in bytes.
const MaxKey = 512

// CheckKey returns an error that is fs.ErrInvalid unless the key is one or more
// segments of 1 to 200 of the characters a–z, 0–9, "-", "_" and ".", separated by "/";
// no segment may begin with a dot. Such keys mean the same to every server and to
// every file system that has no names of its own for devices. A store may refuse
// a key of which another blob's key is the beginning up to a "/", with
// fs.ErrExist: a directory can't be a file.
func CheckKey(key string) error {
	if len(key) > MaxKey {
		return fmt.Errorf("blobstore: a key of more than %d bytes: %w", MaxKey, fs.ErrInvalid)
	}
	start := 0
	for i := range len(key) + 1 {
		if i == len(key) || key[i] == '/' {
			if n := i - start; n == 0 || n > maxSegment || key[start] == '.' {
				return fmt.Errorf("blobstore: key %q: %w", key, fs.ErrInvalid)
			}
			start = i + 1
			continue
		}
		if c := key[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return fmt.Errorf("blobstore: key %q: %w", key, fs.ErrInvalid)
		}
	}
	return nil
}

const maxSegment = 200
