// Package fileblob keeps blobs as files in a directory. The blob with the key ab/cd is the file
// ab/cd below it, so any file tool can list, copy and restore blobs. The only other entry is .tmp,
// with a file for every running Put; no key has a segment that begins with a dot.
//
// A blob's file is complete and never changes: it is written under .tmp, made durable, and only
// then linked to its name. Directories are created on demand and never removed. Only the owner can
// read and write files and directories.
//
// Nothing outside the directory is ever accessed, whatever it contains. Only regular files are
// blobs; symbolic links are never followed.
package fileblob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/formsvc/toolkit/blobstore"
)

// tempDir has the files that are being written.
const tempDir = ".tmp"

// bufferSize is what a client that stops in the middle of an upload holds.
const bufferSize = 64 << 10

const (
	fileMode = 0o600
	dirMode  = 0o700
)

// A Store is a [blobstore.Store] and a [blobstore.Cleaner] of files. It is safe for concurrent use.
// Several Stores, in one or more processes, may use one directory.
//
// In addition to the contract of blobstore.Store: Delete of a missing blob fails with
// fs.ErrNotExist. If the machine loses power soon after Delete, the blob may be back. Put fails
// with fs.ErrExist if a part of the key before a "/" is the key of a blob, or if the key was such a
// part of another key once. The context is checked before every read and for every listed file. It
// can't stop a system call or the reader of a Put: on a network file system that hangs, a call may
// take as long as the system waits.
//
// Methods fail with [blobstore.ErrNoSpace] if the disk is full or a quota exhausted, and with
// [blobstore.ErrUnavailable] for every other error of the system. That includes a directory that is
// no longer where it was opened, so a missing disk doesn't look like an empty one. After Close all
// methods fail with fs.ErrClosed.
type Store struct {
	root    *os.Root
	dir     string      // absolute
	held    fs.FileInfo // the directory of root
	buffers sync.Pool   // of *[]byte, bufferSize long

	renaming sync.Mutex                  // held from checking that a name is free until it is taken
	flush    func(*os.File, error) error // syncDir, except in tests
	synced   sync.Map                    // has the directories whose names are durable; formsvc has 256
}

var (
	_ blobstore.Store   = (*Store)(nil)
	_ blobstore.Cleaner = (*Store)(nil)
)

// Open opens the Store in a directory, which it creates if it doesn't exist; the parent directory
// must exist. To detect a disk that isn't mounted yet, set dir to a directory on the disk instead
// of its mount point. The caller must close the Store.
func Open(dir string) (_ *Store, err error) {
	defer wrap(&err, "open", dir)
	s := &Store{flush: syncDir}
	s.buffers.New = func() any { return new(make([]byte, bufferSize)) }
	if s.dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if err = os.Mkdir(s.dir, dirMode); err == nil {
		err = syncDir(os.Open(filepath.Dir(s.dir)))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if s.root, err = os.OpenRoot(s.dir); err != nil {
		return nil, err
	}
	if s.held, err = s.root.Stat("."); err == nil {
		err = s.makeDir(tempDir)
	}
	if err != nil {
		return nil, errors.Join(err, s.root.Close())
	}
	return s, nil
}

// Close closes the directory. Open readers stay usable.
func (s *Store) Close() error {
	if err := s.root.Close(); err != nil {
		return fmt.Errorf("fileblob: %w", err)
	}
	return nil
}

// Open implements [blobstore.Store].
func (s *Store) Open(ctx context.Context, key string, offset, length int64) (_ io.ReadCloser, _ blobstore.Info, err error) {
	defer wrap(&err, "open", key)
	if offset < 0 {
		return nil, blobstore.Info{}, fmt.Errorf("offset %d: %w", offset, fs.ErrInvalid)
	}
	// Check before opening: opening a named pipe would wait for a writer.
	if _, err := s.find(ctx, key); err != nil {
		return nil, blobstore.Info{}, err
	}
	f, err := s.root.Open(key)
	if err != nil {
		return nil, blobstore.Info{}, s.missing(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err == nil {
		_, err = f.Seek(min(offset, info.Size()), io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, blobstore.Info{}, s.missing(err)
	}
	left := max(info.Size()-offset, 0)
	if length >= 0 {
		left = min(left, length)
	}
	return &reader{ctx, f, left}, infoOf(key, info), nil
}

// Stat implements [blobstore.Store].
func (s *Store) Stat(ctx context.Context, key string) (_ blobstore.Info, err error) {
	defer wrap(&err, "stat", key)
	info, err := s.find(ctx, key)
	if err != nil {
		return blobstore.Info{}, err
	}
	return infoOf(key, info), nil
}

// Delete implements [blobstore.Store].
func (s *Store) Delete(ctx context.Context, key string) (err error) {
	defer wrap(&err, "delete", key)
	// Check before removing: an empty directory would be removed as well.
	if _, err := s.find(ctx, key); err != nil {
		return err
	}
	return s.missing(s.root.Remove(key))
}

func infoOf(key string, info fs.FileInfo) blobstore.Info {
	return blobstore.Info{Key: key, Size: info.Size(), ModTime: info.ModTime()}
}

// find returns the file info of a blob.
func (s *Store) find(ctx context.Context, key string) (fs.FileInfo, error) {
	if err := cmp.Or(blobstore.CheckKey(key), ctx.Err()); err != nil {
		return nil, err
	}
	for i := range len(key) {
		if key[i] != '/' {
			continue
		}
		// The root confines access to the directory, but would follow a link within it.
		info, err := s.root.Lstat(key[:i])
		if err != nil {
			return nil, s.missing(err)
		}
		if !info.IsDir() {
			return nil, s.missing(fs.ErrNotExist)
		}
	}
	info, err := s.root.Lstat(key)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, s.missing(err)
	}
	return info, nil
}

// missing translates an error that may mean that there is no such file.
func (s *Store) missing(err error) error {
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	if away := s.here(); away != nil {
		return away
	}
	return fs.ErrNotExist
}

// here returns an error if the directory is no longer where it was opened. The root still works
// then: a removed directory looks empty, and one that was moved, lazily unmounted or mounted over
// looks unchanged.
func (s *Store) here() error {
	info, err := os.Stat(s.dir)
	if err != nil {
		return err
	}
	if !os.SameFile(info, s.held) {
		return fmt.Errorf("%w: another directory is now at %s", blobstore.ErrUnavailable, s.dir)
	}
	return nil
}

// wrap adds what a method does to its error, and translates an error of the system.
func wrap(err *error, what, name string) {
	if *err != nil {
		*err = fmt.Errorf("fileblob: %s %q: %w", what, name, failure(*err))
	}
}

// failure wraps an error of the system in the matching error of package blobstore.
func failure(err error) error {
	var foreign readError
	var errno syscall.Errno
	switch {
	case errors.As(err, &foreign):
		return foreign.error
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", blobstore.ErrNoSpace, err)
	case errors.As(err, &errno):
		return fmt.Errorf("%w: %w", blobstore.ErrUnavailable, err)
	}
	return err
}

// A readError is an error of the reader of a Put: it says nothing about the disk.
type readError struct{ error }

// A reader reads a part of a file.
type reader struct {
	ctx  context.Context
	f    *os.File
	left int64
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.f.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	if err == io.EOF { // the file was truncated
		return n, io.ErrUnexpectedEOF
	}
	if err != nil {
		return n, failure(err)
	}
	return n, nil
}

// Close implements io.Closer.
func (r *reader) Close() error { return r.f.Close() }
