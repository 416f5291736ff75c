package keyring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/formsvc/toolkit/storage/internal/disk"
)

const header = `# The keys under which formsvc encrypts secrets in its database. Without them the secrets are lost: back this file up with
# the database, and let nobody else read it. The first key encrypts, all of them decrypt. What follows a key is its id.
`

// OpenFile returns a Keyring with the keys of a file, in the form of [Parse]. If there is none, it creates one with a random
// key; of several processes that do so at once, all get the same key. It fails if others than the owner may use the file.
func OpenFile(path string) (*Keyring, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("keyring: %w", err)
	}
	k := &Keyring{path: path}
	if err = k.load(); errors.Is(err, fs.ErrNotExist) {
		first := generate()
		fresh := path + "." + first.id + ".tmp"
		// Unlike a rename, a link never replaces a file that another process has created.
		if err = write(fresh, []key{first}); err == nil {
			err = os.Link(fresh, path)
		}
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
		if err = errors.Join(err, os.Remove(fresh), disk.SyncDir(filepath.Dir(path))); err == nil {
			err = k.load()
		}
	}
	if err != nil {
		return nil, err
	}
	return k, nil
}

// load reads the file, if there is one.
func (k *Keyring) load() error {
	if k == nil || k.path == "" {
		return nil
	}
	info, err := os.Stat(k.path)
	if err != nil {
		return fmt.Errorf("keyring: %w", err)
	}
	if mode := info.Mode(); !mode.IsRegular() || mode.Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("keyring: %s (mode %04o) must be a regular file that only its owner may use; run chmod 600 on it", k.path, mode.Perm())
	}
	text, err := os.ReadFile(k.path)
	if err != nil {
		return fmt.Errorf("keyring: %w", err)
	}
	ring, err := Parse(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", k.path, err)
	}
	k.keys.Store(ring.keys.Load())
	return nil
}

// AddKey puts a new random key first in an existing file, and returns the Keyring of the file. Then seal every value again
// (see [KeyID]), and call [RemoveKeys]. If several machines use one database, copy the file to all of them at once.
func AddKey(path string) (*Keyring, error) {
	return change(path, func(ring []key) []key { return append([]key{generate()}, ring...) })
}

// RemoveKeys removes all keys from a file but the one with this id. Values sealed under a removed key can't be opened any
// more. It fails with [ErrUnknownKey] if the file doesn't have that key.
func RemoveKeys(path, keep string) (*Keyring, error) {
	return change(path, func(ring []key) []key {
		return slices.DeleteFunc(slices.Clone(ring), func(k key) bool { return k.id != keep })
	})
}

// change replaces a file as a whole. The new file, path.tmp, also excludes other changes until it has the file's name.
func change(path string, edit func([]key) []key) (*Keyring, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("keyring: %w", err)
	}
	k, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	ring := edit(k.list())
	if len(ring) == 0 {
		return nil, fmt.Errorf("%w: the file doesn't have the one to keep", ErrUnknownKey)
	}
	fresh := path + ".tmp"
	if err := write(fresh, ring); err != nil {
		return nil, fmt.Errorf("%w (if no other change is running, remove %s)", err, fresh)
	}
	if err := keepOwner(fresh, path); err != nil { // the server couldn't read it
		return nil, fmt.Errorf("keyring: %w", errors.Join(err, os.Remove(fresh)))
	}
	if err := errors.Join(os.Rename(fresh, path), disk.SyncDir(filepath.Dir(path))); err != nil {
		return nil, fmt.Errorf("keyring: %w", err)
	}
	return k, k.load()
}

// write creates a file with these keys. When it returns nil, they are on disk.
func write(path string, ring []key) error {
	text := []byte(header)
	for _, k := range ring {
		text = fmt.Appendf(text, "%x # %s\n", k.secret[:], k.id)
	}
	return disk.WriteFile(path, text)
}
