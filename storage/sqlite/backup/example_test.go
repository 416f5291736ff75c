package backup_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/formsvc/toolkit/blobstore/fileblob"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/storage/sqlite/backup"
)

// Back up a store that is in use, and restore it to an empty directory.
func Example() {
	dir, err := os.MkdirTemp("", "backup")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := roundTrip(context.Background(), dir); err != nil {
		log.Fatal(err)
	}
	fmt.Println("the database is back")
	// Output: the database is back
}

func roundTrip(ctx context.Context, dir string) (err error) {
	store, err := sqlite.Open(ctx, filepath.Join(dir, "forms.db"), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	files, err := fileblob.Open(filepath.Join(dir, "files"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	if _, err := backup.Write(ctx, filepath.Join(dir, "backup-1"), backup.Source{Store: store, Files: files}); err != nil {
		return err
	}

	empty, err := fileblob.Open(filepath.Join(dir, "restored-files"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, empty.Close()) }()
	restored := filepath.Join(dir, "restored.db")
	if _, err := backup.Restore(ctx, filepath.Join(dir, "backup-1"), backup.Target{Database: restored, Files: empty}); err != nil {
		return err
	}
	_, err = os.Stat(restored)
	return err
}
