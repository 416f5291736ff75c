package keyring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// AddKey puts a new random key first in a file and keeps the other keys. It returns the
// Keyring of the file, as [OpenFile] does. The file must exist.
//
// To replace a key, call AddKey and wait until every process that seals has noticed,
// which takes a second. Seal every value again under the new key (see [KeyID]), and then
// call [RemoveKeys].
//
// If several machines use one database, the other machines can't open values sealed under
// the new key until they have the new file. To avoid that, first add a key to every file
// by hand, after the first one, and move it to the front later.
//
// The file is replaced as a whole: after a crash it is either the old or the new one. A
// file whose name ends in ".tmp" may be left beside it. That file contains keys, is not
// used and can be deleted. Any number of processes may change a file at once; they wait
// for each other. AddKey fails with [errors.ErrUnsupported] on systems without flock,
// such as Windows; edit the file by hand there.
func AddKey(path string) (*Keyring, error) {
	k, err := change(path, func(ring []Key) ([]Key, error) {
		fresh := Generate()
		for slices.ContainsFunc(ring, func(key Key) bool { return key.ID == fresh.ID }) {
			fresh = Generate() // the id is short enough for collisions to happen
		}
		return slices.Insert(ring, 0, fresh), nil
	})
	if err != nil {
		return nil, fmt.Errorf("keyring: add a key: %w", err)
	}
	return k, nil
}

// RemoveKeys removes all keys from a file except those with the given ids, which must be
// at least one. The order of the keys stays the same. Values sealed under a removed key
// can't be opened any more. It returns the Keyring of the file.
//
// It fails with [ErrUnknownKey] if an id isn't in the file. It changes the file as
// [AddKey] does.
func RemoveKeys(path string, keep ...string) (*Keyring, error) {
	k, err := change(path, func(ring []Key) ([]Key, error) {
		if len(keep) == 0 {
			return nil, errors.New("no key would be left")
		}
		for _, id := range keep {
			if !slices.ContainsFunc(ring, func(key Key) bool { return key.ID == id }) {
				return nil, fmt.Errorf("%w: %q", ErrUnknownKey, id)
			}
		}
		return slices.DeleteFunc(ring, func(key Key) bool { return !slices.Contains(keep, key.ID) }), nil
	})
	if err != nil {
		return nil, fmt.Errorf("keyring: remove keys: %w", err)
	}
	return k, nil
}

// change replaces the keys of a file by what edit returns.
func change(path string, edit func([]Key) ([]Key, error)) (*Keyring, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// Replace the target of a symbolic link, not the link.
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := lock(target)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // unlocks it
	ring, _, err := readKeys(f)
	if err != nil {
		return nil, err
	}
	if ring, err = edit(ring); err != nil {
		return nil, err
	}
	made, err := makeKeys(ring)
	if err != nil {
		return nil, err
	}
	if err := replace(f, ring); err != nil {
		return nil, err
	}
	return newFileKeyring(path, made), nil
}

// lock opens the file at path and waits until no other process has locked it. The lock
// ends when the file is closed or the process ends.
func lock(path string) (*os.File, error) {
	for {
		f, err := openRegular(path)
		if err != nil {
			return nil, err
		}
		same, err := lockAndCompare(f, path)
		if same && err == nil {
			return f, nil
		}
		_ = f.Close()
		if err != nil {
			return nil, err
		}
	}
}

// lockAndCompare locks f and reports whether it still is the file at path: the previous
// holder of the lock may have replaced it.
func lockAndCompare(f *os.File, path string) (bool, error) {
	if err := flock(f); err != nil {
		return false, fmt.Errorf("lock %s: %w", path, err)
	}
	locked, err := f.Stat()
	if err != nil {
		return false, err
	}
	current, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	return os.SameFile(locked, current), nil
}

// replace replaces a locked file by one with these keys. Only one process at a time gets
// here, so the temporary file always has the same name, which also cleans up after a
// process that died.
func replace(old *os.File, ring []Key) error {
	info, err := old.Stat()
	if err != nil {
		return err
	}
	text := format(ring)
	if len(text) > maxFile {
		return fmt.Errorf("%s: it would be longer than %d bytes", old.Name(), maxFile)
	}
	temp := old.Name() + ".tmp"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // beside a file that the caller names
	if err != nil {
		return err
	}
	if err := fill(f, text, info); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	if err := os.Rename(temp, old.Name()); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return syncDir(filepath.Dir(old.Name()))
}
