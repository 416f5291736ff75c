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

// errStop ends a walk when its caller stops.
var errStop = errors.New("stop")

// List implements [blobstore.Store]. If something can't be read, it fails; it never leaves it out.
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
			// A directory that disappeared meanwhile also looks empty.
			err = s.here()
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(blobstore.Info{}, fmt.Errorf("fileblob: list: %w", err))
		}
	}
}

// A walk visits the files whose keys begin with a prefix.
type walk struct {
	ctx    context.Context
	prefix string
	yield  func(blobstore.Info) error
}

// dir visits a directory and its subdirectories. at is its key, with a slash at the end.
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

// entry visits an entry of a directory.
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

// gone returns nil if the error means that the entry was removed since its name was read, otherwise
// err.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return failure(err)
}

// Clean implements [blobstore.Cleaner]: it removes the files of Puts that have written nothing
// since before.
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
	// Read all names at once, since removing could hide others. There are few.
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
