package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// existing refuses a database that no server has made, so that a command in the wrong
// directory neither makes an empty one nor says that there is nothing in it.
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

// noDatabase says where a database was looked for.
func (g *global) noDatabase() error {
	scheme, path, err := g.scheme()
	if err != nil {
		return err
	}
	if scheme != "sqlite" {
		return errors.New(`the database has no tables of formsvc: --db names another one, "formsvc serve" makes them`)
	}
	flags := "--db names"
	if g.DB == "" {
		flags = "--data or --db names"
	}
	if _, err := os.Stat(path); err == nil {
		return fmt.Errorf("the database %s has no tables of formsvc: %s another one, \"formsvc serve\" makes them", absolute(path), flags)
	}
	return fmt.Errorf("there is no database at %s: %s another place, \"formsvc serve\" makes a new one", absolute(path), flags)
}

// existingFiles refuses a directory of files that no server has made. The one that lies
// beside an existing database by default may be made.
func (g *global) existingFiles() error {
	dir, s3, err := g.blobURL()
	if err != nil || s3 != nil || g.DB == "" && g.Blobs == "" {
		return err
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("there is no directory of uploaded files at %s: --blobs names another place, \"formsvc serve\" makes a new one", absolute(dir))
}

// absolute returns a path for people who may not be where they think.
func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}
