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

// MarkerKey is the key of a blob that is no file's: it says which data a blob store
// belongs to ([Files.Claim]).
const MarkerKey = "formsvc-store"

// markerNote is for people who find the marker. The identity is in the line before.
const markerNote = "\nThe files in this place belong to the formsvc database with this identity. Leave this file where it is.\n"

// claimSample is how many blobs are looked at in a blob store without a marker.
const claimSample = 500

// ClaimOptions are the optional settings of [Files.Claim].
type ClaimOptions struct {
	// DryRun says whether the blob store is, or could become, that of the data, and
	// writes nothing. Defaults to writing the identity.
	DryRun bool
}

// Claim makes sure that the blob store belongs to the data in the store: that it holds
// the identity of that data ([IdentityStore]) under [MarkerKey]. It writes the identity
// there when there is none and the blob store is empty, or has files of ours, as one has
// that was used by an earlier release. Otherwise it fails with [ErrOtherBlobs], and
// changes nothing. Several nodes may claim a blob store at once.
//
// A Service claims its blob store by itself before it writes to it or removes anything
// from it for the first time, and before each [Files.Sweep]. A program that calls Claim
// when it starts learns early that it was given the wrong one.
func (s Files) Claim(ctx context.Context, opts *ClaimOptions) (err error) {
	defer s.s.span(&ctx, "Files.Claim").end(&err)
	if s.s.blobs == nil {
		return fmt.Errorf("formsvc: claim: %w", errors.ErrUnsupported)
	}
	if err := s.s.claim(ctx, opts == nil || !opts.DryRun); err != nil {
		return fmt.Errorf("formsvc: claim: %w", err)
	}
	return nil
}

// BlobOwner returns the identity of the data that a blob store belongs to, or
// fs.ErrNotExist when it belongs to none yet. It is [ErrOtherBlobs] when what is there
// under [MarkerKey] is no identity.
func BlobOwner(ctx context.Context, blobs blobstore.Store) (_ ID, err error) {
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

// claim makes sure that the blob store is ours; with mark it becomes ours when it is free.
func (c *core) claim(ctx context.Context, mark bool) error {
	ours, err := c.store.Identity(ctx)
	if err != nil {
		return fmt.Errorf("identity of the store: %w", err)
	}
	theirs, err := BlobOwner(ctx, c.blobs)
	if errors.Is(err, fs.ErrNotExist) {
		if err := c.checkStrangers(ctx, ours); err != nil || !mark {
			return err
		}
		theirs = ours
		_, err = c.blobs.Put(ctx, MarkerKey, strings.NewReader(string(ours)+markerNote))
		if err = blobError(err); errors.Is(err, fs.ErrExist) { // another was first, perhaps another node of ours
			theirs, err = BlobOwner(ctx, c.blobs)
		}
	}
	if err == nil && theirs != ours {
		err = fmt.Errorf("%w: %s, and not this one, %s", ErrOtherBlobs, theirs.short(), ours.short())
	}
	c.owned.Store(err == nil)
	return err
}

// checkStrangers makes sure that a blob store without a marker is empty or has a file of
// ours.
func (c *core) checkStrangers(ctx context.Context, ours ID) error {
	var ids []ID
	for info, err := range c.blobs.List(ctx, "") {
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
