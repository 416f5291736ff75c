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
	"syscall"
	"time"

	"github.com/formsvc/toolkit/blobstore"
)

// Put implements [blobstore.Store]. It takes at least two fsyncs, one for the file and one for its
// name.
func (s *Store) Put(ctx context.Context, key string, r io.Reader) (_ int64, err error) {
	defer wrap(&err, "put", key)
	if err := cmp.Or(blobstore.CheckKey(key), ctx.Err()); err != nil {
		return 0, err
	}
	if err := s.makeDir(tempDir); err != nil {
		return 0, err
	}
	temp := tempDir + "/" + rand.Text()
	f, err := s.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return 0, err
	}
	defer func() {
		_ = f.Close()           // already closed unless something failed
		_ = s.root.Remove(temp) // if that fails, Clean removes it; a blob has its own name by now
	}()
	n, err := s.fill(ctx, f, r)
	if err != nil {
		return 0, err
	}
	// If the reader was slow to end, the last write may be long ago. If the time can't be set, the
	// blob has the time of that write.
	now := time.Now()
	_ = s.root.Chtimes(temp, now, now)
	if err := cmp.Or(f.Sync(), f.Close(), ctx.Err()); err != nil {
		return 0, err
	}
	return n, s.publish(temp, key)
}

// fill writes the content of a reader and returns its size. Unlike io.Copy it checks the context.
func (s *Store) fill(ctx context.Context, f *os.File, r io.Reader) (size int64, err error) {
	buffer := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(buffer)
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := r.Read(*buffer)
		if n > 0 {
			if _, err := f.Write((*buffer)[:n]); err != nil {
				return 0, err
			}
		}
		size += int64(n)
		if err == io.EOF { // an error that wraps it isn't the end
			return size, nil
		}
		if err != nil {
			return 0, readError{err}
		}
	}
}

// publish links a written file to the name of its blob, unless that is taken, and makes it durable.
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
	err := s.flush(s.root.Open(dir))
	if err != nil {
		_ = s.root.Remove(key)
	}
	return err
}

// link adds a name to a file; on a file system without hard links it renames the file.
func (s *Store) link(temp, key string) error {
	err := s.root.Link(temp, key)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fs.ErrExist
	case !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrPermission):
		return err
	}
	// A rename replaces an existing file. The lock prevents that within this Store.
	s.renaming.Lock()
	defer s.renaming.Unlock()
	if _, err := s.root.Lstat(key); err == nil {
		return fs.ErrExist
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.root.Rename(temp, key)
}

// makeDir creates a directory and its parents, and makes their names durable.
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
		if err := s.root.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err = s.root.Lstat(dir)
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		kind := blobstore.ErrUnavailable
		if info.Mode().IsRegular() && dir != tempDir {
			kind = fs.ErrExist // a blob
		}
		return fmt.Errorf("%s is not a directory: %w", dir, kind)
	}
	// The process that created an existing directory may have crashed before the name was durable,
	// or may not be done yet.
	if _, synced := s.synced.Load(dir); synced && !made {
		return nil
	}
	if err := s.flush(s.root.Open(above)); err != nil {
		return err
	}
	s.synced.Store(dir, nil)
	return nil
}

// syncDir makes the names in an open directory durable, if the file system supports that, and closes
// it.
func syncDir(dir *os.File, err error) error {
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if runtime.GOOS == "windows" {
		return nil
	}
	// Some file systems don't support this for directories.
	if err := dir.Sync(); !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
