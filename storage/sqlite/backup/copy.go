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
func each(ctx context.Context, rows *sqlite.Store, do func(*formsvc.File) error) error {
	q := formsvc.FileQuery{AllAccounts: true, Page: formsvc.PageQuery{Limit: batch, Ascending: true}}
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

// copyFiles copies the files that the database known and that are not copied yet. gone
// says that some are not there anymore, since they were deleted meanwhile.
func (w *writing) copyFiles(ctx context.Context, known *sqlite.Store) (gone bool, err error) {
	err = each(ctx, known, func(f *formsvc.File) error {
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
				gone = true
				return nil
			case err == nil:
				w.damaged[f.ID] = true
			}
		}
		w.done += f.Size
		w.Progress(Progress{"files", w.done, max(w.all, w.done)})
		return err
	})
	return gone, err
}

// transfer copies a file's bytes. It fails with ErrDamaged when they are not there or not
// what was uploaded, and leaves nothing in to then.
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
var errOther = errors.New("its SHA-256 is another")

// checked fails at the end, instead of ending, when what was read is not what it should
// be: so a store that gets it never has it.
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

// dropUnknown removes the files that the copy of the database doesn't know.
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
