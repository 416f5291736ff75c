package fileblob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/formsvc/toolkit/blobstore"
)

// listBatch is how many names of a directory are read at once.
const listBatch = 1000

// errStop ends a walk whose caller wants no more.
var errStop = errors.New("stop")

// List implements [blobstore.Store]. What can't be read is an error and never
// left out.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[blobstore.Info, error] {
	return func(yield func(blobstore.Info, error) bool) {
		w := walk{ctx: ctx, prefix: prefix, yield: func(info blobstore.Info) error {
			if !yield(info, nil) {
				return errStop
			}
			return nil
		}}
		err := ctx.Err()
		if err == nil {
			err = w.dir(s.root, ".", "")
		}
		if err == nil {
			// Nothing is found in a directory that went away meanwhile, either.
			err = s.here()
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(blobstore.Info{}, fmt.Errorf("fileblob: list: %w", err))
		}
	}
}

// A walk goes through the files whose keys begin with a prefix.
type walk struct {
	ctx    context.Context
	prefix string
	yield  func(blobstore.Info) error
}

// dir goes through a directory and those below it. at is the key up to it, with
// a slash at its end.
func (w *walk) dir(above *os.Root, name, at string) error {
	root, err := above.OpenRoot(name)
	if err != nil {
		return gone(err)
	}
	defer func() { _ = root.Close() }()
	f, err := root.Open(".")
	if err != nil {
		return gone(err)
	}
	defer func() { _ = f.Close() }()
	for {
		names, err := f.Readdirnames(listBatch)
		for _, name := range names {
			if err := w.entry(root, name, at); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return gone(err)
		}
	}
}

// entry goes on with what is in a directory.
func (w *walk) entry(root *os.Root, name, at string) error {
	key := at + name
	if blobstore.CheckKey(key) != nil || !strings.HasPrefix(key, w.prefix) && !strings.HasPrefix(w.prefix, key+"/") {
		return nil
	}
	if err := w.ctx.Err(); err != nil {
		return err
	}
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return gone(err)
	case info.IsDir():
		return w.dir(root, name, key+"/")
	case info.Mode().IsRegular() && strings.HasPrefix(key, w.prefix):
		return w.yield(infoOf(key, info))
	}
	return nil
}

// gone returns the error of something that may have gone since its name was
// read, which is none then.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return failure(err)
}

// Clean implements [blobstore.Cleaner]: it removes the files of Puts that have
// written nothing since a time.
func (s *Store) Clean(ctx context.Context, before time.Time) (int, error) {
	n, err := s.clean(ctx, before)
	if err != nil {
		return n, fmt.Errorf("fileblob: clean: %w", err)
	}
	return n, nil
}

func (s *Store) clean(ctx context.Context, before time.Time) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	root, err := s.root.OpenRoot(tempDir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, s.here()
	}
	if err != nil {
		return 0, failure(err)
	}
	defer func() { _ = root.Close() }()
	f, err := root.Open(".")
	if err != nil {
		return 0, failure(err)
	}
	defer func() { _ = f.Close() }()
	// All names at once: those that are removed must not hide others. There are few.
	names, err := f.Readdirnames(-1)
	if err != nil {
		return 0, failure(err)
	}
	n := 0
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		info, err := root.Lstat(name)
		if err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			if err = root.Remove(name); err == nil {
				n++
			}
		}
		if err := gone(err); err != nil {
			return n, err
		}
	}
	return n, nil
}
