// Package blobstore is the contract of blob stores, which keep the bytes of files: blobs under
// keys, written once and never changed. The packages below it are implementations: fileblob keeps
// blobs in a directory, s3blob in a bucket of an S3-compatible server, memblob in memory. Package
// blobtest tests any implementation.
//
// A blob is only bytes: its owner, name and hash are stored elsewhere. One blob belongs to no file:
// under formsvc.MarkerKey, package formsvc keeps which database the others belong to.
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

// Errors in addition to those of package io/fs; test for them with [errors.Is].
var (
	// ErrUnavailable means that the store can't be used now: its server is down, slow or refuses
	// access. A retry may succeed.
	ErrUnavailable = errors.New("blobstore: unavailable")
	// ErrNoSpace means that there is no room for another blob.
	ErrNoSpace = errors.New("blobstore: no space left")
)

// An Info is the metadata of a blob.
type Info struct {
	Key     string
	Size    int64     // bytes
	ModTime time.Time // when the blob became visible, or a little earlier, by the clock of the store
}

// A Store keeps blobs. Its methods are safe for concurrent use. If the context ends, they stop and
// return its error.
//
// Methods fail with fs.ErrInvalid for a key that [CheckKey] refuses. A store that doesn't respond
// within its own time limit fails with [ErrUnavailable]; no method waits for it forever.
type Store interface {
	// Put stores the content of r under a free key and returns its size in bytes. When Put returns
	// nil, the blob is complete, visible and durable. If Put fails, no blob is visible, unless the
	// response of a server was lost. If reading r fails, the error is r's. Put reads r until
	// io.EOF, possibly from another goroutine, but not after it returned. It fails with fs.ErrExist
	// if the key is taken; of concurrent Puts for a key, only one succeeds.
	Put(ctx context.Context, key string, r io.Reader) (int64, error)
	// Open returns a reader of length bytes of a blob, from the byte offset on, and the blob's
	// Info. A negative length means up to the end. A range beyond the end is cut there, so the
	// reader may be empty; offset must not be negative. Reading ends when the context ends. If the
	// blob is shorter than Info says, reading fails with io.ErrUnexpectedEOF; a failed read never
	// returns io.EOF. The caller must close the reader. Open fails with fs.ErrNotExist.
	Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, Info, error)
	// Stat returns the Info of a blob, or fs.ErrNotExist.
	Stat(ctx context.Context, key string) (Info, error)
	// List yields the blobs whose keys begin with the prefix, each once, in any order. Blobs that
	// are added or deleted during the call may be included or not. An error ends the list, which is
	// then incomplete. Objects without a valid key are left out.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]
	// Delete removes a blob. If there is none, it returns fs.ErrNotExist, or nil if the store can't
	// detect that.
	Delete(ctx context.Context, key string) error
}

// A Cleaner is a [Store] in which an interrupted Put leaves remains that aren't a blob, for example
// after a crash.
type Cleaner interface {
	// Clean removes the remains of Puts that have stored nothing since before, or that began before,
	// and returns their number. If such a Put is still running, it fails.
	Clean(ctx context.Context, before time.Time) (int, error)
}

// MaxKey is the largest length of a key in bytes.
const MaxKey = 512

// CheckKey returns an error that is fs.ErrInvalid unless the key is valid: one or more segments,
// separated by "/". A segment has 1 to 200 of the characters a–z, 0–9, "-", "_" and ".", and
// doesn't begin with a dot. Such keys work on every server, and on every file system without
// reserved names for devices. A store may refuse a key with fs.ErrExist if a part of it before a
// "/" is the key of another blob: a directory can't be a file.
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
