// Package fileblob keeps blobs as files in a directory. The blob with the key
// ab/cd is the file ab/cd below it, so that any tool for files can look at blobs,
// copy them and bring them back. Beside them is only .tmp, with a file for every
// Put that is under way; no key has a segment that begins with a dot.
//
// A file that is a blob is whole and never changes: it is written under .tmp,
// made durable, and only then linked to its name. Directories are made when they
// are needed and never removed. Files can be read and written by their owner
// only, and directories likewise, unless [Options.Mode] says otherwise.
//
// Nothing outside the directory is ever touched, whatever is put into it. What
// is not a regular file, such as a symbolic link, is no blob, and nor is what
// lies behind a symbolic link.
package fileblob

import (
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

// tempDir is where files are while they are written.
const tempDir = ".tmp"

// bufferSize is how much is written at once; 100 MB take as long with 1 MiB.
const bufferSize = 256 << 10

// Options are the optional settings of [Open].
type Options struct {
	// Mode is what may be done with the files that Put makes, before the umask;
	// directories can also be entered by whoever may read the files. The owner must
	// be able to read and write. Defaults to 0600.
	Mode fs.FileMode
}

// A Store is a [blobstore.Store] and a [blobstore.Cleaner] of files. It is safe
// for concurrent use; several Stores, also those of other processes, may use one
// directory.
//
// What blobstore.Store leaves open: Delete of what isn't there fails with
// fs.ErrNotExist. A deleted blob may be back when the machine lost its power
// soon afterwards. A key fails with fs.ErrExist when the beginning of it, up to a
// "/", is the key of a blob, or when it was such a beginning of another once.
// The context is looked at before every read, and for every file that is listed.
// It can't stop a system call, nor the reader of a Put: who waits for a network
// file system that hangs waits as long as the system does.
//
// A full disk or an exhausted quota is [blobstore.ErrNoSpace]; every other
// refusal of the system is [blobstore.ErrUnavailable], also when the directory
// is not any more where it was opened, so that a disk that went away does not
// look like one without blobs. After Close all methods fail with fs.ErrClosed.
type Store struct {
	root    *os.Root
	dir     string      // absolute
	held    fs.FileInfo // of the directory that root holds
	mode    fs.FileMode
	buffers sync.Pool // of *[]byte, bufferSize long

	renaming sync.Mutex // held from looking whether a name is free to taking it

	mu     sync.Mutex
	synced map[string]bool // directories whose names are known to be durable
}

var (
	_ blobstore.Store   = (*Store)(nil)
	_ blobstore.Cleaner = (*Store)(nil)
)

// Open opens the Store in a directory, which it makes if it isn't there; the
// directory above it must be. A disk that is not mounted yet is therefore
// noticed if dir is a directory on the disk, and not where it is mounted.
// Whoever opened closes.
func Open(dir string, opts *Options) (*Store, error) {
	s := &Store{mode: 0o600, synced: make(map[string]bool)}
	s.buffers.New = func() any { return new(make([]byte, bufferSize)) }
	if opts != nil && opts.Mode != 0 {
		s.mode = opts.Mode
	}
	if s.mode&^fs.ModePerm != 0 || s.mode&0o600 != 0o600 {
		return nil, fmt.Errorf("fileblob: files with mode %v: %w", s.mode, fs.ErrInvalid)
	}
	if err := s.open(dir); err != nil {
		return nil, fmt.Errorf("fileblob: %w", failure(err))
	}
	return s, nil
}

func (s *Store) open(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	s.dir = dir
	err = os.Mkdir(dir, s.dirMode())
	if err == nil {
		err = s.syncAbove()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if s.root, err = os.OpenRoot(dir); err != nil {
		return err
	}
	if s.held, err = s.root.Stat("."); err == nil {
		err = s.makeDir(tempDir)
	}
	if err != nil {
		return errors.Join(err, s.root.Close())
	}
	return nil
}

// syncAbove makes the name of the directory itself durable.
func (s *Store) syncAbove() error {
	above, err := os.OpenRoot(filepath.Dir(s.dir))
	if err != nil {
		return err
	}
	defer func() { _ = above.Close() }()
	return syncDir(above, ".")
}

// dirMode lets whoever may read files also enter directories.
func (s *Store) dirMode() fs.FileMode { return s.mode | s.mode&0o444>>2 }

// Close ends the use of the directory. Readers that are open stay usable.
func (s *Store) Close() error {
	if err := s.root.Close(); err != nil {
		return fmt.Errorf("fileblob: %w", err)
	}
	return nil
}

// Open implements [blobstore.Store].
func (s *Store) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blobstore.Info, error) {
	f, info, err := s.openFile(ctx, key)
	if err != nil {
		return nil, blobstore.Info{}, fmt.Errorf("fileblob: open %q: %w", key, err)
	}
	r := &reader{ctx: ctx, f: f, left: max(info.Size-offset, 0)}
	if length >= 0 {
		r.left = min(r.left, length)
	}
	if offset < 0 {
		err = fmt.Errorf("offset %d: %w", offset, fs.ErrInvalid)
	} else if _, sought := f.Seek(min(offset, info.Size), io.SeekStart); sought != nil {
		err = failure(sought)
	}
	if err != nil {
		_ = f.Close()
		return nil, blobstore.Info{}, fmt.Errorf("fileblob: open %q: %w", key, err)
	}
	return r, info, nil
}

func (s *Store) openFile(ctx context.Context, key string) (*os.File, blobstore.Info, error) {
	// Looking before opening: opening a named pipe would wait for a writer.
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
	if err != nil {
		_ = f.Close()
		return nil, blobstore.Info{}, s.missing(err)
	}
	return f, infoOf(key, info), nil
}

// Stat implements [blobstore.Store].
func (s *Store) Stat(ctx context.Context, key string) (blobstore.Info, error) {
	info, err := s.find(ctx, key)
	if err != nil {
		return blobstore.Info{}, fmt.Errorf("fileblob: stat %q: %w", key, err)
	}
	return infoOf(key, info), nil
}

// Delete implements [blobstore.Store].
func (s *Store) Delete(ctx context.Context, key string) error {
	// Looking before removing: an empty directory would be removed as well.
	_, err := s.find(ctx, key)
	if err == nil {
		err = s.missing(s.root.Remove(key))
	}
	if err != nil {
		return fmt.Errorf("fileblob: delete %q: %w", key, err)
	}
	return nil
}

func infoOf(key string, info fs.FileInfo) blobstore.Info {
	return blobstore.Info{Key: key, Size: info.Size(), ModTime: info.ModTime()}
}

// check is what every method that names a blob begins with.
func check(ctx context.Context, key string) error {
	if err := blobstore.CheckKey(key); err != nil {
		return err
	}
	return ctx.Err()
}

// find returns what the system knows of the file that is a blob.
func (s *Store) find(ctx context.Context, key string) (fs.FileInfo, error) {
	if err := check(ctx, key); err != nil {
		return nil, err
	}
	for i := range len(key) {
		if key[i] != '/' {
			continue
		}
		// The root keeps us inside, but would follow a link that stays inside, too.
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

// missing returns what an error means that may say that there is no such file.
func (s *Store) missing(err error) error {
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return failure(err)
	}
	if away := s.here(); away != nil {
		return away
	}
	return fs.ErrNotExist
}

// here returns an error when the directory is not any more where it was opened.
// The one that the root holds answers all the same: once removed, that there is
// nothing in it, and once moved, unmounted lazily or mounted over, as before.
func (s *Store) here() error {
	info, err := os.Stat(s.dir)
	if err != nil {
		return failure(err)
	}
	if !os.SameFile(info, s.held) {
		return fmt.Errorf("%w: another directory is now at %s", blobstore.ErrUnavailable, s.dir)
	}
	return nil
}

// failure returns an error of the system with what it means to our callers.
func failure(err error) error {
	var errno syscall.Errno
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", blobstore.ErrNoSpace, err)
	case errors.As(err, &errno):
		return fmt.Errorf("%w: %w", blobstore.ErrUnavailable, err)
	}
	return err
}

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
	if err == io.EOF { // somebody has cut the file
		return n, io.ErrUnexpectedEOF
	}
	if err != nil {
		return n, failure(err)
	}
	return n, nil
}

// Close implements io.Closer.
func (r *reader) Close() error { return r.f.Close() }
