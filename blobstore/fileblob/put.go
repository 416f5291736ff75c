package fileblob

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/formsvc/toolkit/blobstore"
)

// Put implements [blobstore.Store]. It needs the time of two fsyncs at least,
// one for the file and one for its name.
func (s *Store) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if err := check(ctx, key); err != nil {
		return 0, fmt.Errorf("fileblob: put %q: %w", key, err)
	}
	n, err := s.put(ctx, key, r)
	if err != nil {
		return 0, fmt.Errorf("fileblob: put %q: %w", key, err)
	}
	return n, nil
}

func (s *Store) put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if err := s.makeDir(tempDir); err != nil {
		return 0, err
	}
	temp := tempDir + "/" + rand.Text()
	f, err := s.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, s.mode)
	if err != nil {
		return 0, failure(err)
	}
	defer func() {
		_ = f.Close()           // which it is unless something failed
		_ = s.root.Remove(temp) // Clean removes what is left; a blob has its own name by now
	}()
	n, err := s.fill(ctx, f, r)
	if err != nil {
		return 0, err
	}
	if err := s.seal(temp, f); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return n, s.publish(temp, key)
}

// fill writes what a reader yields and returns how many bytes that is. What is
// more than a buffer is written by a goroutine, while the reader goes on.
func (s *Store) fill(ctx context.Context, f *os.File, r io.Reader) (int64, error) {
	buffer, spare := s.buffers.Get().(*[]byte), s.buffers.Get().(*[]byte)
	defer func() {
		s.buffers.Put(buffer)
		s.buffers.Put(spare)
	}()
	w := writer{file: f}
	n, ended, err := read(ctx, r, *buffer)
	switch {
	case err != nil:
		return 0, err
	case ended:
		return int64(n), w.write((*buffer)[:n])
	}
	w.full, w.empty = make(chan []byte, 1), make(chan []byte, 2)
	w.full <- (*buffer)[:n]
	w.empty <- *spare
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run()
	}()
	err = w.feed(ctx, r)
	close(w.full)
	<-done
	return w.size, cmp.Or(err, w.err)
}

// A writer writes buffers to a file, and empties the rest when that fails.
type writer struct {
	file        *os.File
	full, empty chan []byte
	failed      atomic.Bool // whether err is set
	size, begun int64
	err         error
}

// feed fills empty buffers from a reader until it ends.
func (w *writer) feed(ctx context.Context, r io.Reader) error {
	for {
		buffer := <-w.empty
		n, ended, err := read(ctx, r, buffer)
		if err != nil {
			return err
		}
		w.full <- buffer[:n]
		if ended || w.failed.Load() {
			return nil
		}
	}
}

// run writes full buffers until there are no more.
func (w *writer) run() {
	for buffer := range w.full {
		if w.err == nil {
			if w.err = w.write(buffer); w.err != nil {
				w.failed.Store(true)
			}
		}
		w.empty <- buffer[:cap(buffer)]
	}
}

func (w *writer) write(p []byte) error {
	if _, err := w.file.Write(p); err != nil {
		return failure(err)
	}
	w.size += int64(len(p))
	if w.size-w.begun >= writeAhead {
		startWriting(w.file, w.begun, w.size-w.begun)
		w.begun = w.size
	}
	return nil
}

// writeAhead is after how many bytes the disk is told to begin with them, so that
// fsync has less to do: 100 MB took 70 ms instead of 117.
const writeAhead = 4 << 20

// read fills the buffer as far as the reader goes and says whether that is the
// end. Its errors are those of the reader and the context.
func read(ctx context.Context, r io.Reader, buffer []byte) (n int, ended bool, err error) {
	for n < len(buffer) {
		if err := ctx.Err(); err != nil {
			return 0, false, err
		}
		m, err := r.Read(buffer[n:])
		n += m
		if err == io.EOF { // an error that only is io.EOF to errors.Is is no end
			return n, true, nil
		}
		if err != nil {
			return 0, false, err
		}
	}
	return n, false, nil
}

// seal makes the content of a file durable and closes it.
func (s *Store) seal(temp string, f *os.File) error {
	// The last write may be long ago when the reader was slow to end. Where the
	// time can't be set, that is when the blob seems to be from.
	now := time.Now()
	_ = s.root.Chtimes(temp, now, now)
	if err := f.Sync(); err != nil {
		return failure(err)
	}
	if err := f.Close(); err != nil {
		return failure(err)
	}
	return nil
}

// publish gives a file that is written the name of its blob, unless that is
// taken, and makes it durable.
func (s *Store) publish(temp, key string) error {
	dir := path.Dir(key)
	if err := s.makeDir(dir); err != nil {
		return err
	}
	if err := s.here(); err != nil {
		return err
	}
	if err := s.link(temp, key); err != nil {
		return err
	}
	if err := syncDir(s.root, dir); err != nil {
		_ = s.root.Remove(key)
		return failure(err)
	}
	return nil
}

// link gives a file another name, or in a file system without hard links a new
// one.
func (s *Store) link(temp, key string) error {
	err := s.root.Link(temp, key)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return fs.ErrExist
	case !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrPermission):
		return failure(err)
	}
	// A rename replaces what is there. Within this Store nobody comes between.
	s.renaming.Lock()
	defer s.renaming.Unlock()
	if _, err := s.root.Lstat(key); err == nil {
		return fs.ErrExist
	} else if !errors.Is(err, fs.ErrNotExist) {
		return failure(err)
	}
	if err := s.root.Rename(temp, key); err != nil {
		return failure(err)
	}
	return nil
}

// makeDir makes a directory and those above it, and their names durable.
func (s *Store) makeDir(dir string) error {
	if dir == "." {
		return nil
	}
	above := path.Dir(dir)
	if err := s.makeDir(above); err != nil {
		return err
	}
	info, err := s.root.Lstat(dir)
	made := errors.Is(err, fs.ErrNotExist)
	if made {
		if err := s.root.Mkdir(dir, s.dirMode()); err != nil && !errors.Is(err, fs.ErrExist) {
			return failure(err)
		}
		info, err = s.root.Lstat(dir)
	}
	if err != nil {
		return failure(err)
	}
	if !info.IsDir() {
		kind := blobstore.ErrUnavailable
		if info.Mode().IsRegular() && dir != tempDir {
			kind = fs.ErrExist // a blob
		}
		return fmt.Errorf("%s is not a directory: %w", dir, kind)
	}
	// Who made one that is there may have crashed before its name was durable, or
	// not have come this far.
	if !made && s.isSynced(dir) {
		return nil
	}
	if err := syncDir(s.root, above); err != nil {
		return failure(err)
	}
	s.setSynced(dir)
	return nil
}

func (s *Store) isSynced(dir string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced[dir]
}

func (s *Store) setSynced(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.synced) >= maxSynced {
		clear(s.synced)
	}
	s.synced[dir] = true
}

// maxSynced bounds what is known of directories. The blobs of formsvc are in
// 256.
const maxSynced = 10_000

// syncDir makes the names in a directory durable, where that can be done.
func syncDir(root *os.Root, dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	// Some file systems don't know this for directories.
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
