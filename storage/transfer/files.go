package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// A file has what a copy needs to know of a file.
type file struct {
	id     formsvc.ID
	size   int64
	sha256 []byte
}

// checkBlobs checks that no blob store belongs to other data.
func (j *job) checkBlobs(ctx context.Context, identity string) error {
	for _, b := range []blobstore.Store{j.FromBlobs, j.ToBlobs} {
		if b == nil {
			continue
		}
		owner, err := formsvc.BlobOwner(ctx, b)
		if err == nil && string(owner) != identity {
			err = fmt.Errorf("%w: one of the two blob stores belongs to other data", formsvc.ErrOtherBlobs)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// claim makes the target blob store belong to the data. It must not have files yet:
// unmarked files belong to somebody else.
func (j *job) claim(ctx context.Context) error {
	if j.ToBlobs == nil {
		return nil
	}
	svc, err := formsvc.New(j.target, &formsvc.Options{Blobs: j.ToBlobs})
	if err != nil {
		return err
	}
	return svc.Files.Claim(ctx, nil)
}

// fileBatch is the number of files read from the database at once.
const fileBatch = 500

// eachFile calls do for every file of the new database.
func (j *job) eachFile(ctx context.Context, do func(f *file) error) error {
	for after := ""; ; {
		var batch []file
		err := j.to.Read(ctx, func(c bun.IConn) error {
			var err error
			batch, err = j.nextFiles(ctx, c, after)
			return err
		})
		if err != nil {
			return err
		}
		for i := range batch {
			if err := do(&batch[i]); err != nil {
				return err
			}
		}
		if len(batch) < fileBatch {
			return nil
		}
		after = string(batch[len(batch)-1].id)
	}
}

func (j *job) nextFiles(ctx context.Context, c bun.IConn, after string) (list []file, err error) {
	t := bunstore.Table{Name: "formsvc_files", Key: []string{"id"}, Columns: []bunstore.Column{
		{Name: "id", Kind: bunstore.UUID}, {Name: "size", Kind: bunstore.Int}, {Name: "sha256", Kind: bunstore.Bytes},
	}}
	var key []any
	if after != "" {
		key = []any{after}
	}
	for len(list) < fileBatch {
		query, args := t.Select(j.to, key, fileBatch)
		n := 0
		err := each(ctx, c, &t, query, args, func(row []any) error {
			n++
			key = row[:1]
			if id, ok := row[0].(string); ok && row[1] != nil { // not a bar
				f := file{id: formsvc.ID(id)}
				f.size, _ = row[1].(int64)
				f.sha256, _ = row[2].([]byte)
				list = append(list, f)
			}
			return nil
		})
		if err != nil || n < fileBatch {
			return list, err
		}
	}
	return list, nil
}

// files copies the bytes of files that aren't in the target yet.
func (j *job) files(ctx context.Context) error {
	if j.ToBlobs == nil {
		return nil
	}
	var all, done int64
	err := j.to.Read(ctx, func(c bun.IConn) error {
		return c.QueryRowContext(ctx, "SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM formsvc_files").Scan(&all)
	})
	if err != nil {
		return err
	}
	return j.eachFile(ctx, func(f *file) error {
		err := j.file(ctx, f)
		if errors.Is(err, formsvc.ErrCorrupt) {
			j.report.Damaged = append(j.report.Damaged, f.id)
			if j.SkipDamaged {
				err = nil
			}
		}
		j.report.Files++
		j.report.Bytes += f.size
		done += f.size
		j.Progress(Progress{"files", done, all})
		return err
	})
}

// file copies one file. It never stores bytes that aren't what was uploaded.
func (j *job) file(ctx context.Context, f *file) error {
	key := formsvc.BlobKey(f.id)
	info, err := j.ToBlobs.Stat(ctx, key)
	switch {
	case err == nil && info.Size == f.size:
		return nil
	case err == nil:
		return fmt.Errorf("%w: another file %s already exists", ErrNotEmpty, f.id)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	in, _, err := j.FromBlobs.Open(ctx, key, 0, -1)
	if err != nil {
		return damaged(f, err)
	}
	defer func() { _ = in.Close() }()
	_, err = j.ToBlobs.Put(ctx, key, newChecked(in, f))
	return damaged(f, err)
}

// compareFiles reads the bytes of all files from the target.
func (j *job) compareFiles(ctx context.Context) error {
	if j.ToBlobs == nil {
		return nil
	}
	return j.eachFile(ctx, func(f *file) error {
		j.report.Files++
		j.report.Bytes += f.size
		in, _, err := j.ToBlobs.Open(ctx, formsvc.BlobKey(f.id), 0, -1)
		if err == nil {
			_, err = io.Copy(io.Discard, newChecked(in, f))
			_ = in.Close()
		}
		if err = damaged(f, err); errors.Is(err, formsvc.ErrCorrupt) {
			j.report.Damaged = append(j.report.Damaged, f.id)
			return errors.Join(ErrDiffers, err)
		}
		return err
	})
}

// errOther means that bytes are not those that were uploaded.
var errOther = errors.New("its SHA-256 differs")

// damaged returns the error for a file whose bytes are missing or wrong.
func damaged(f *file, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errOther) {
		return fmt.Errorf("file %s: %w: %w", f.id, formsvc.ErrCorrupt, err)
	}
	return err
}

// checked returns an error instead of io.EOF if the bytes read aren't what they should
// be, so that a store that reads from it doesn't keep them.
type checked struct {
	in   io.Reader
	hash hash.Hash
	sum  []byte
	left int64 // bytes
}

func newChecked(in io.Reader, f *file) *checked {
	return &checked{in: in, hash: sha256.New(), sum: f.sha256, left: f.size}
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	_, _ = c.hash.Write(p[:n])
	if c.left -= int64(n); c.left < 0 || errors.Is(err, io.EOF) && (c.left != 0 || !bytes.Equal(c.hash.Sum(nil), c.sum)) {
		return n, errOther
	}
	return n, err
}
