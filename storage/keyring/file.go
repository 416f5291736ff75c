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

// followEvery is how often a file is read again for one reason.
const followEvery = time.Second

// maxFile is the length of the longest file of keys in bytes.
const maxFile = 1 << 20

// A file is where the keys of a Keyring come from.
type file struct {
	path string // absolute
	now  func() time.Time

	mu     sync.Mutex // one reading at a time
	opened attempt    // to find a key that is not known
	sealed attempt    // to seal under the key that is the first now
}

// attempt is the last time that a file was read for one reason.
type attempt struct {
	at  time.Time
	err error
}

// OpenFile returns a Keyring with the keys of a file; see [Parse] for what is in
// it. When there is no file it makes one with one random key, readable and
// writable by its owner only; the directory must exist. Several processes may do
// this at the same time: all get the same key.
//
// It fails when others than the owner may read or write the file, when it is not
// a regular file, or when it is empty, malformed or longer than 1 MiB. A symbolic
// link must lead to a file that exists. The modes are not looked at on Windows,
// where they say nothing. The file must be on a local disk.
//
// The Keyring follows the file, so that a server notices within a second what
// [AddKey] and [RemoveKeys] do in another process: it reads the file again, at
// most once a second for each reason, when it is to open a value whose key it
// does not know and when it is to seal. A key that was added less than a second
// ago may therefore be unknown; the same call succeeds a second later. While the
// file can't be read the keys stay as they are.
func OpenFile(path string) (*Keyring, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("keyring: %w", err)
	}
	k, err := openFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := create(path); err != nil {
			return nil, fmt.Errorf("keyring: make the file: %w", err)
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

// newFileKeyring returns a Keyring with the keys that the file at path has now.
func newFileKeyring(path string, made *keys) *Keyring {
	now := time.Now
	k := &Keyring{file: &file{path: path, now: now, sealed: attempt{at: now()}}}
	k.keys.Store(made)
	return k
}

// Reload reads the file of a Keyring again, whenever that was done last. When it
// fails the keys stay as they are. For a Keyring without a file it does nothing.
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

// load reads the file. The caller holds the file's mutex, so that an older
// content never replaces a newer one.
func (k *Keyring) load() error {
	_, made, err := readFile(k.file.path)
	if err != nil {
		return err
	}
	k.keys.Store(made)
	return nil
}

// follow makes the key seal that is the first one of the file now.
func (k *Keyring) follow() {
	if k == nil || k.file == nil {
		return
	}
	k.file.mu.Lock()
	defer k.file.mu.Unlock()
	_ = k.try(&k.file.sealed) // the keys that are there still seal
}

// find returns the key of that id, from the file if need be.
func (k *Keyring) find(id string) (cipher.AEAD, error) {
	if aead := k.key(id); aead != nil {
		return aead, nil
	}
	if k == nil || k.file == nil {
		return nil, fmt.Errorf("%w: %s", ErrUnknownKey, id)
	}
	k.file.mu.Lock()
	defer k.file.mu.Unlock()
	if aead := k.key(id); aead != nil { // found while this call waited
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

// try reads the file again unless that was last done less than a second ago. It
// returns what came of the last time. The caller holds the file's mutex.
func (k *Keyring) try(last *attempt) error {
	now := k.file.now()
	// A clock that was set back must not keep the file from being read.
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

// openRegular opens a file for reading. It looks before it opens, because
// opening a named pipe would wait for a writer.
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

// readKeys reads the keys of an open file, for writing and for use. It checks
// what was really opened.
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
		return fmt.Errorf("%s: others than its owner may use it (mode %04o); change that with chmod 600", path, mode)
	}
	return nil
}

// create makes the file with a new key, unless there is one by then.
func create(path string) error {
	// A link that leads nowhere more likely misses its disk than its first key.
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
	// Unlike a rename, a link never replaces what another process has made.
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// Also when the other process was first: it may not have come this far, and
	// the key must not be used before it is sure to stay.
	return syncDir(dir)
}

// fill writes a new file, which becomes one like the one it will replace, if
// any. It closes f. When it returns nil the text is on disk.
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
		err = f.Chmod(mode) // the mode it was made with depends on the umask
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes the names in a directory durable, where that can be done.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir) //nolint:gosec // the directory of a file that the caller names
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

// header starts every file that this package writes.
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
