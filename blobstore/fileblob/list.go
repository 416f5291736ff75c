package fileblob

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"strings"
	"time"

	"github.com/formsvc/toolkit/blobstore"
)

// List implements [blobstore.Store]. If something can't be read, it fails; it never leaves it out.
// It holds the names of one directory at a time in memory, and of those above it.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[blobstore.Info, error] {
	return func(yield func(blobstore.Info, error) bool) {
		stopped := false
		err := fs.WalkDir(s.root.FS(), ".", func(key string, d fs.DirEntry, err error) error {
			if ended := ctx.Err(); ended != nil {
				return ended
			}
			if err != nil || key == "." {
				return gone(err)
			}
			whole := strings.HasPrefix(key, prefix)
			if blobstore.CheckKey(key) != nil || !whole && !strings.HasPrefix(prefix, key+"/") {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			if !whole || d.IsDir() {
				return nil
			}
			info, err := s.root.Lstat(key) // d.Info may leave the root
			if err != nil || !info.Mode().IsRegular() {
				return gone(err)
			}
			if stopped = !yield(infoOf(key, info), nil); stopped {
				return fs.SkipAll
			}
			return nil
		})
		if err == nil && !stopped { // a directory that disappeared meanwhile also looks empty
			err = s.here()
		}
		if err != nil {
			wrap(&err, "list", prefix)
			yield(blobstore.Info{}, err)
		}
	}
}

// gone returns nil if the error means that the entry was removed since its name was read, otherwise
// err.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Clean implements [blobstore.Cleaner]: it removes the files of Puts that have written nothing
// since before.
func (s *Store) Clean(ctx context.Context, before time.Time) (n int, err error) {
	defer wrap(&err, "clean", tempDir)
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	// An open directory, since the name could become a link to another one.
	root, err := s.root.OpenRoot(tempDir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, s.here()
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = root.Close() }()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		info, err := root.Lstat(entry.Name())
		if err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			if err = root.Remove(entry.Name()); err == nil {
				n++
			}
		}
		if err := gone(err); err != nil {
			return n, err
		}
	}
	return n, nil
}
