package keyring

import (
	"crypto/cipher"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// followEvery is the shortest time between two reads of a file for the same reason.
const followEvery = time.Second

// maxFile is the maximum length of a key file in bytes.
const maxFile = 1 << 20

// A file is the source of a Keyring's keys.
type file struct {
	path string // absolute
	now  func() time.Time

	mu     sync.Mutex // held while the file is read
	opened attempt    // to find an unknown key
	sealed attempt    // to seal under the current first key
}

// attempt is the last read of a file for one reason.
type attempt struct {
	at  time.Time
	err error
}

// OpenFile returns a Keyring with the keys of a file; see [Parse] for the format. If the
// file doesn't exist, it creates one with a random key that only its owner can read and
// write; the directory must exist. If several processes do this at once, all get the same
// key.
//
// It fails if others than the owner may read or write the file, if it isn't a regular
// file, or if it is empty, malformed or longer than 1 MiB. A symbolic link must lead to
// an existing file. On Windows modes aren't checked, because they mean nothing there. The
// file must be on a local disk.
//
// The Keyring follows the file, so that a server notices within a second what [AddKey]
// and [RemoveKeys] do in another process. It reads the file again to seal, and to open a
// value under an unknown key, each at most once a second. So a key added less than a
// second ago may be unknown; the same call succeeds a second later. While the file can't
// be read the keys stay as they are.
func OpenFile(path string) (*Keyring, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("keyring: %w", err)
	}
	k, err := openFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := create(path); err != nil {
			return nil, fmt.Errorf("keyring: create the file: %w", err)
		}
		k, err = openFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("keyring: %w", err)
	}
	return k, nil
}

func openFile(path string) (*Keyring, error) {
	_, made, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return newFileKeyring(path, made), nil
}

// newFileKeyring returns a Keyring with the current keys of the file at path.
func newFileKeyring(path string, made *keys) *Keyring {
	now := time.Now
	k := &Keyring{file: &file{path: path, now: now, sealed: attempt{at: now()}}}
	k.keys.Store(made)
	return k
}

// Reload reads the file of a Keyring again, no matter when it was last read. If it fails,
// the keys stay as they are. For a Keyring without a file it does nothing.
func (k *Keyring) Reload() error {
	if k == nil || k.file == nil {
		return nil
	}
	k.file.mu.Lock()
	defer k.file.mu.Unlock()
	if err := k.load(); err != nil {
		return fmt.Errorf("keyring: reload: %w", err)
	}
	return nil
}

// load reads the file. The caller holds the file's mutex, so that older content never
// replaces newer.
func (k *Keyring) load() error {
	_, made, err := readFile(k.file.path)
	if err != nil {
		return err
	}
	k.keys.Store(made)
	return nil
}

// follow makes the current first key of the file the one that seals.
func (k *Keyring) follow() {
	if k == nil || k.file == nil {
		return
	}
	k.file.mu.Lock()
	defer k.file.mu.Unlock()
	_ = k.try(&k.file.sealed) // on failure the old first key still seals
}

// find returns the key of that id, reading the file again if necessary.
func (k *Keyring) find(id string) (cipher.AEAD, error) {
	if aead := k.key(id); aead != nil {
		return aead, nil
	}
	if k == nil || k.file == nil {
		return nil, fmt.Errorf("%w: %s", ErrUnknownKey, id)
	}
	k.file.mu.Lock()
	defer k.file.mu.Unlock()
	if aead := k.key(id); aead != nil { // another call read it while this one waited
		return aead, nil
	}
	err := k.try(&k.file.opened)
	if aead := k.key(id); aead != nil {
		return aead, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s, and the file can't be read: %w", ErrUnknownKey, id, err)
	}
	return nil, fmt.Errorf("%w: %s", ErrUnknownKey, id)
}

// try reads the file again unless it was read for this reason less than a second ago. It
// returns the result of the last read. The caller holds the file's mutex.
func (k *Keyring) try(last *attempt) error {
	now := k.file.now()
	// If the clock was set back, read the file anyway.
	if since := now.Sub(last.at); since < 0 || since >= followEvery {
		*last = attempt{at: now, err: k.load()}
	}
	return last.err
}

// readFile returns the keys of the file at path.
func readFile(path string) ([]Key, *keys, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	return readKeys(f)
}

// openRegular opens a file for reading. It checks the file first, because opening a named
// pipe would wait for a writer.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := check(path, info); err != nil {
		return nil, err
	}
	return os.Open(path) //nolint:gosec // the caller names the file
}

// readKeys reads the keys of an open file, both to write them and to use them. It checks
// the file that was actually opened.
func readKeys(f *os.File) ([]Key, *keys, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if err := check(f.Name(), info); err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, nil, err
	}
	if len(text) > maxFile {
		return nil, nil, fmt.Errorf("%s: longer than %d bytes", f.Name(), maxFile)
	}
	ring, err := parse(string(text))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	made, err := makeKeys(ring)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return ring, made, nil
}

func check(path string, info fs.FileInfo) error {
	if info.IsDir() {
		return fmt.Errorf("%s: a directory, not a file of keys", path)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("%s: other users than its owner may use it (mode %04o); run chmod 600 on it", path, mode)
	}
	return nil
}

// create creates the file with a new key, unless it exists by then.
func create(path string) error {
	// A broken link more likely points to a disk that isn't mounted than to a file yet to
	// be created.
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s: a symbolic link to a file that does not exist", path)
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if err := fill(f, format([]Key{Generate()}), nil); err != nil {
		return err
	}
	// Unlike a rename, a link never replaces a file that another process has created.
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// Also if another process was first: it may not have synced yet, and the key must not
	// be used before it is durable.
	return syncDir(dir)
}

// fill writes a new file with the mode and owner of the file it will replace, if any. It
// closes f. When it returns nil, the text is on disk.
func fill(f *os.File, text string, old fs.FileInfo) error {
	mode := fs.FileMode(0o600)
	if old != nil {
		mode = old.Mode().Perm()
	}
	_, err := f.WriteString(text)
	if err == nil && old != nil {
		err = keepOwner(f, old)
	}
	if err == nil {
		err = f.Chmod(mode) // the mode at creation depends on the umask
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes the names in a directory durable, if the system supports that.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir) //nolint:gosec // the directory of a file that the caller names
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	// Some file systems don't support this for directories.
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

// header is the start of every file that this package writes.
const header = `# The keys under which formsvc encrypts secrets in its database. Without them
# the secrets are lost: back this file up whenever you back the database up, as
# "formsvc backup" does, and let nobody else read it or the copy.
#
# The first key encrypts, all of them decrypt. What follows a key is its id.
# Comments of your own are not kept when a key is added or removed.
`

// format returns the text of a file with these keys.
func format(ring []Key) string {
	var b strings.Builder
	b.WriteString(header)
	for _, key := range ring {
		fmt.Fprintf(&b, "%x # %s\n", key.Secret[:], key.ID)
	}
	return b.String()
}
