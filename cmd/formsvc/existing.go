package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// existing rejects a database that no server has created. So a command in the wrong directory neither creates an empty one
// nor reports that there is no data.
func (g *global) existing(ctx context.Context) error {
	steps, err := g.migrations(ctx)
	if err != nil {
		return err
	}
	if !applied(steps) {
		return g.noDatabase()
	}
	return nil
}

// noDatabase returns an error that says where the database was expected.
func (g *global) noDatabase() error {
	scheme, path, err := g.scheme()
	if err != nil {
		return err
	}
	if scheme != "sqlite" {
		return errors.New(`the database has no tables of formsvc: set --db to another one, or create them with "formsvc serve"`)
	}
	flags := "--db"
	if g.DB == "" {
		flags = "--data or --db"
	}
	if _, err := os.Stat(path); err == nil {
		return fmt.Errorf("the database %s has no tables of formsvc: set %s to another one, or create them with \"formsvc serve\"", absolute(path), flags)
	}
	return fmt.Errorf("there is no database at %s: set %s to another place, or create one with \"formsvc serve\"", absolute(path), flags)
}

// existingFiles rejects a directory of files that no server has created. The default one beside an existing database may
// be missing.
func (g *global) existingFiles() error {
	dir, s3, err := g.blobURL()
	if err != nil || s3 != nil || g.DB == "" && g.Blobs == "" {
		return err
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("there is no directory of uploaded files at %s: set --blobs to another place, or create one with \"formsvc serve\"", absolute(dir))
}

// absolute returns a path that doesn't depend on the current directory, for messages.
func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}
