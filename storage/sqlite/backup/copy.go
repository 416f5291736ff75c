package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// each calls do for every file that a database knows.
func each(ctx context.Context, rows formsvc.FileStore, oldestFirst bool, do func(*formsvc.File) error) error {
	q := formsvc.FileQuery{AllAccounts: true, Page: formsvc.PageQuery{Limit: batch, Ascending: oldestFirst}}
	for {
		page, err := rows.Files(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := do(&page.Items[i]); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
		q.Page.After = page.Items[len(page.Items)-1].ID
	}
}

// copyFiles copies the files that the database known and that are not copied yet: the newest
// first, since those are deleted soonest. It copies all that are there, and then fails with
// errDeleted if some were deleted meanwhile.
func (w *writing) copyFiles(ctx context.Context, known formsvc.FileStore) error {
	var deleted error
	err := each(ctx, known, false, func(f *formsvc.File) error {
		_, err := w.to.Stat(ctx, formsvc.BlobKey(f.ID))
		if err == nil || w.damaged[f.ID] {
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		err = transfer(ctx, f, w.files, w.to)
		if errors.Is(err, ErrDamaged) {
			_, err = w.rows.File(ctx, formsvc.FileKey{AccountID: f.AccountID, ID: f.ID})
			switch {
			case errors.Is(err, formsvc.ErrNotFound):
				deleted = errDeleted
				return nil
			case err == nil:
				w.damaged[f.ID] = true
			}
		}
		w.done += f.Size
		w.Progress(Progress{"files", w.done, max(w.all, w.done)})
		return err
	})
	if err != nil {
		return err
	}
	return deleted
}

// transfer copies a file's bytes. If they are missing or not what was uploaded, it fails
// with ErrDamaged and stores nothing in to.
func transfer(ctx context.Context, f *formsvc.File, from, to blobstore.Store) error {
	key := formsvc.BlobKey(f.ID)
	in, _, err := from.Open(ctx, key, 0, -1)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("file %s is %w: it is missing", f.ID, ErrDamaged)
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	return put(ctx, f, in, to)
}

func put(ctx context.Context, f *formsvc.File, in io.Reader, to blobstore.Store) error {
	_, err := to.Put(ctx, formsvc.BlobKey(f.ID), newChecked(in, f))
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errOther) {
		return fmt.Errorf("file %s is %w: %w", f.ID, ErrDamaged, err)
	}
	return err
}

// errOther means that bytes are not those that were uploaded.
var errOther = errors.New("its SHA-256 differs")

// checked returns an error instead of io.EOF if the bytes read aren't what they should
// be, so that a store that reads from it doesn't keep them.
type checked struct {
	in   io.Reader
	hash hash.Hash
	sum  []byte
	left int64 // bytes
}

func newChecked(in io.Reader, f *formsvc.File) *checked {
	return &checked{in: in, hash: sha256.New(), sum: f.SHA256[:], left: f.Size}
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	_, _ = c.hash.Write(p[:n])
	if c.left -= int64(n); c.left < 0 || errors.Is(err, io.EOF) && (c.left != 0 || !bytes.Equal(c.hash.Sum(nil), c.sum)) {
		return n, errOther
	}
	return n, err
}

// dropUnknown removes the files that the copy of the database doesn't have.
func (w *writing) dropUnknown(ctx context.Context, copied *sqlite.Store) error {
	var ids []formsvc.ID
	drop := func() error {
		unknown, err := copied.UnknownFiles(ctx, ids)
		for _, id := range unknown {
			err = errors.Join(err, w.to.Delete(ctx, formsvc.BlobKey(id)))
		}
		ids = ids[:0]
		return err
	}
	for info, err := range w.to.List(ctx, "") {
		if err != nil {
			return err
		}
		id := formsvc.ID(info.Key[max(len(info.Key)-idLength, 0):])
		if !id.Valid() {
			return fmt.Errorf("%s is not a file of ours", info.Key)
		}
		if ids = append(ids, id); len(ids) == batch {
			if err := drop(); err != nil {
				return err
			}
		}
	}
	return drop()
}

const idLength = 36
