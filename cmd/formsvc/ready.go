package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
)

const (
	componentDisk = "disk"
	// minFree is when a disk counts as full. Writes fail only when nothing is left, but then it's too late to react.
	minFree = 64 << 20
)

// ready decides what GET /readyz returns.
func (n *node) ready(ctx context.Context) error {
	if n.leaving.Load() {
		return errLeaving
	}
	var newer error
	if n.ping != nil {
		if err := n.ping(ctx); errors.Is(err, formsvc.ErrMoved) {
			return err
		} else if errors.Is(err, storage.ErrSchemaNewer) {
			newer = err
		}
	}
	err := n.svc.Ready(ctx)
	degraded, ok := errors.AsType[*formsvc.DegradedError](err)
	if err != nil && !ok {
		return err
	}
	var failing []string
	if ok {
		failing = degraded.Components
	}
	if newer != nil {
		failing, err = append(failing, "schema"), errors.Join(err, newer)
	}
	if n.full != nil {
		if full := n.full(); full != nil {
			failing, err = append(failing, componentDisk), errors.Join(err, full)
		}
	}
	for _, component := range failing {
		if slices.Contains(n.required, component) {
			return errors.New(err.Error()) // no longer a DegradedError
		}
	}
	if len(failing) > 0 {
		return &formsvc.DegradedError{Components: failing, Err: err}
	}
	return nil
}

// diskFull returns an error if a local directory that the server writes to has less than that many bytes left.
func (g *global) diskFull(least int64) error {
	var dirs []string
	if scheme, path, err := g.scheme(); err == nil && scheme == "sqlite" {
		dirs = append(dirs, filepath.Dir(path))
	}
	if dir, s3, err := g.blobURL(); err == nil && s3 == nil {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		if free, err := freeOf(dir); err == nil && free < least {
			return fmt.Errorf("%s are free on the disk of %s", inBytes(free), dir)
		}
	}
	return nil
}
