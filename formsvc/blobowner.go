package formsvc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/formsvc/toolkit/blobstore"
)

// MarkerKey is the key of the blob that says which data a blob store belongs to ([Files.Claim]). It belongs to no file.
const MarkerKey = "formsvc-store"

// markerNote is for people who find the marker. The identity is in the line before.
const markerNote = "\nThe files in this place belong to the formsvc database with this identity. Leave this file where it is.\n"

// claimSample is how many blobs are checked in a blob store without a marker.
const claimSample = 500

// ClaimOptions are the optional settings of [Files.Claim].
type ClaimOptions struct {
	// DryRun checks whether the blob store belongs, or could belong, to the data, and writes
	// nothing. Defaults to writing the identity.
	DryRun bool
}

// Claim makes sure that the blob store belongs to the data in the store: that it has the data's
// identity ([Store]) under [MarkerKey]. If there is no identity, and the blob store is
// empty or has files of this data, Claim writes the identity. Otherwise it
// changes nothing and fails with [ErrOtherBlobs]. Several nodes may claim a blob store at once.
//
// A Service claims its blob store before its first write or removal there, and before each
// [Files.Sweep]. Call Claim at start to detect the wrong blob store early.
func (s Files) Claim(ctx context.Context, opts *ClaimOptions) (err error) {
	defer wrap(&err, "claim")
	if s.s.Blobs == nil {
		return errors.ErrUnsupported
	}
	return s.s.claim(ctx, opts == nil || !opts.DryRun)
}

// blobOwner returns the identity of the data that a blob store belongs to, or fs.ErrNotExist if it belongs to none yet.
// It fails with [ErrOtherBlobs] if the content of [MarkerKey] isn't an identity.
func blobOwner(ctx context.Context, blobs blobstore.Store) (_ ID, err error) {
	r, _, err := blobs.Open(ctx, MarkerKey, 0, idLength)
	if err != nil {
		return "", blobError(err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	text, err := io.ReadAll(r)
	if err != nil {
		return "", blobError(err)
	}
	id, ok := ParseID(string(text))
	if !ok {
		return "", fmt.Errorf("%w: its blob %s holds no identity", ErrOtherBlobs, MarkerKey)
	}
	return id, nil
}

// claimed claims the blob store unless that was done before.
func (c *core) claimed(ctx context.Context) error {
	if c.owned.Load() {
		return nil
	}
	return c.claim(ctx, true)
}

// claim makes sure that the blob store is ours; with mark it claims a free one.
func (c *core) claim(ctx context.Context, mark bool) error {
	ours, err := c.store.Identity(ctx)
	if err != nil {
		return fmt.Errorf("identity of the store: %w", err)
	}
	theirs, err := blobOwner(ctx, c.Blobs)
	if errors.Is(err, fs.ErrNotExist) {
		if err = c.checkStrangers(ctx, ours); err == nil {
			if !mark {
				return nil
			}
			theirs = ours
			_, err = c.Blobs.Put(ctx, MarkerKey, strings.NewReader(string(ours)+markerNote))
			err = blobError(err)
		}
		// Another claim may have been first, perhaps of our own data, whose uploads have no rows yet.
		if errors.Is(err, fs.ErrExist) || errors.Is(err, ErrOtherBlobs) {
			if owner, failed := blobOwner(ctx, c.Blobs); !errors.Is(failed, fs.ErrNotExist) {
				theirs, err = owner, failed
			}
		}
	}
	if err == nil && theirs != ours {
		err = fmt.Errorf("%w: %s, and not this one, %s", ErrOtherBlobs, theirs.short(), ours.short())
	}
	c.owned.Store(err == nil)
	return err
}

// checkStrangers makes sure that a blob store without a marker is empty or has a file of ours.
func (c *core) checkStrangers(ctx context.Context, ours ID) error {
	var ids []ID
	for info, err := range c.Blobs.List(ctx, "") {
		if err != nil {
			return blobError(err)
		}
		if id, ok := blobID(info.Key); ok {
			ids = append(ids, id)
		}
		if len(ids) == claimSample {
			break
		}
	}
	if len(ids) == 0 {
		return nil
	}
	unknown, err := c.store.UnknownFiles(ctx, ids)
	if err == nil && len(unknown) == len(ids) {
		err = fmt.Errorf("%w: this one, %s, knows none of %d files that are there", ErrOtherBlobs, ours.short(), len(ids))
	}
	return err
}
