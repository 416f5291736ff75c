package formsvc

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"

	"github.com/formsvc/toolkit/blobstore"
)

// Open returns a reader of length bytes of a file's content, from the byte offset on; a negative
// length means up to the end. f must come from Get. The caller must close the reader.
//
// Every block is compared with its checksum before any of its bytes is returned, so damaged content
// fails with [ErrCorrupt] and never looks complete. With [Options.HashDownloads], a read of the
// whole file also compares its hash before the last block is returned. Open fails with [ErrCorrupt]
// if the blob is missing or has another size, and with [ErrUnavailable].
func (s Files) Open(ctx context.Context, f *File, offset, length int64) (_ io.ReadCloser, err error) {
	defer wrap(&err, "open file")
	if s.s.Blobs == nil {
		return nil, errors.ErrUnsupported
	}
	return s.open(ctx, f, offset, length, s.s.HashDownloads)
}

func (s Files) open(ctx context.Context, f *File, offset, length int64, hash bool) (io.ReadCloser, error) {
	if offset < 0 || offset > f.Size {
		return nil, fmt.Errorf("offset %d of a file of %d bytes: %w", offset, f.Size, ErrInvalid)
	}
	end := f.Size
	if length >= 0 {
		end = offset + min(length, f.Size-offset)
	}
	first := offset / BlockSize * BlockSize
	last := min((end+BlockSize-1)/BlockSize*BlockSize, f.Size)
	body, info, err := s.s.Blobs.Open(ctx, BlobKey(f.ID), first, max(last-first, 0))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: the blob is missing", ErrCorrupt)
	case err != nil:
		return nil, blobError(err)
	case info.Size != f.Size:
		_ = body.Close()
		return nil, fmt.Errorf("%w: the blob has %d bytes instead of %d", ErrCorrupt, info.Size, f.Size)
	}
	c := &content{
		body: body, file: f, next: first / BlockSize, skip: int(offset - first), left: end - offset,
	}
	if hash && offset == 0 && end == f.Size {
		c.hash = sha256.New()
	}
	return c, nil
}

// A content reads a part of a file block by block.
type content struct {
	body  io.ReadCloser
	file  *File
	hash  hash.Hash // SHA-256; nil unless the whole file is read and its hash compared
	next  int64     // the block to be read next
	skip  int       // bytes of the first block that were not asked for
	left  int64     // bytes still to be returned
	room  []byte    // for a block; nil before the first one
	block []byte    // what is left of the current one
	err   error
}

// Read implements io.Reader.
func (c *content) Read(p []byte) (int, error) {
	if c.left == 0 && c.err == nil {
		c.err = io.EOF
	}
	if len(c.block) == 0 && c.err == nil {
		if err := c.load(); err != nil {
			c.err = fmt.Errorf("formsvc: read file: %w", err)
		}
	}
	if c.err != nil {
		return 0, c.err
	}
	n := copy(p, c.block)
	c.block = c.block[n:]
	c.left -= int64(n)
	return n, nil
}

// Close implements io.Closer.
func (c *content) Close() error {
	c.err = cmp.Or(c.err, fs.ErrClosed)
	return c.body.Close()
}

// load reads the next block and compares it with its checksum.
func (c *content) load() error {
	if c.room == nil {
		c.room = make([]byte, min(BlockSize, c.file.Size))
	}
	block := c.room[:min(BlockSize, c.file.Size-c.next*BlockSize)]
	if _, err := io.ReadFull(c.body, block); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%w: the blob ends early", ErrCorrupt)
		}
		return blobError(err)
	}
	sums := c.file.Blocks
	if int64(len(sums)) < 4*(c.next+1) || binary.BigEndian.Uint32(sums[4*c.next:]) != crc32.Checksum(block, castagnoli()) {
		return fmt.Errorf("%w: the block at byte %d has another checksum", ErrCorrupt, c.next*BlockSize)
	}
	c.next++
	if c.hash != nil {
		_, _ = c.hash.Write(block) // never fails
		if c.next*BlockSize >= c.file.Size && [sha256.Size]byte(c.hash.Sum(nil)) != c.file.SHA256 {
			return fmt.Errorf("%w: it has another hash", ErrCorrupt)
		}
	}
	c.block = block[c.skip:]
	c.block = c.block[:min(int64(len(c.block)), c.left)]
	c.skip = 0
	return nil
}

// CopyTo copies the content of a file to another blob store, unless that has it. It fails with [fs.ErrExist] if that has a blob
// of another size, and with [ErrCorrupt] if the content is missing or isn't what was uploaded; then it changes nothing.
func (s Files) CopyTo(ctx context.Context, f *File, to blobstore.Store) (err error) {
	defer wrap(&err, "copy file")
	if s.s.Blobs == nil {
		return errors.ErrUnsupported
	}
	key := BlobKey(f.ID)
	if info, err := to.Stat(ctx, key); err == nil {
		if info.Size != f.Size {
			err = fmt.Errorf("%w: %s has %d bytes, not %d; move it away", fs.ErrExist, key, info.Size, f.Size)
		}
		return err
	}
	content, err := s.open(ctx, f, 0, -1, true)
	if err != nil {
		return err
	}
	_, err = to.Put(ctx, key, content)
	return errors.Join(err, content.Close())
}

// AllFiles yields the files of all accounts with their Blocks, oldest first. It reads them in small
// pages, so that an index of any size takes little memory. An error ends the sequence.
func AllFiles(ctx context.Context, store Store) iter.Seq2[*File, error] {
	return All(PageQuery{Limit: 100, Ascending: true}, func(page PageQuery) (Page[File], error) {
		return store.AllFiles(ctx, page)
	})
}

// Verify reads the contents of all files of all accounts. For each file that is missing or differs from what was
// uploaded, it calls damaged with an error that is [ErrCorrupt]. It stops if damaged returns an error, or if the store
// or the blob store fails. It returns the number of checked files.
func (s Files) Verify(ctx context.Context, damaged func(*File, error) error) (checked int, err error) {
	defer wrap(&err, "verify")
	if s.s.Blobs == nil {
		return 0, errors.ErrUnsupported
	}
	for f, err := range AllFiles(ctx, s.s.store) {
		if err == nil {
			err = s.verify(ctx, f)
		}
		if errors.Is(err, ErrCorrupt) {
			err = damaged(f, err)
		}
		if err != nil {
			return checked, err
		}
		checked++
	}
	return checked, nil
}

// verify returns an error that is ErrCorrupt if a file's content is damaged. A file that was
// deleted meanwhile isn't damaged.
func (s Files) verify(ctx context.Context, f *File) error {
	c, err := s.open(ctx, f, 0, -1, true)
	if err == nil {
		_, err = io.Copy(io.Discard, c)
		err = errors.Join(err, c.Close())
	}
	if errors.Is(err, ErrCorrupt) {
		if _, gone := s.s.store.File(ctx, FileKey{AccountID: f.AccountID, ID: f.ID}); errors.Is(gone, ErrNotFound) {
			return nil
		}
	}
	return err
}
