// Package disk writes files that survive a power failure.
package disk

import (
	"errors"
	"os"
	"runtime"
)

// WriteFile creates a file for its owner only. When it returns nil, the content is on disk; the name
// is after [SyncDir]. It fails with fs.ErrExist if the file exists.
func WriteFile(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the caller names the file
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// SyncDir makes the names in a directory durable, where the system supports that.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir) //nolint:gosec // the caller names the directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
