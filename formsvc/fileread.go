package formsvc

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"sync"
)

// Open returns a reader of length bytes of a file's content, from the byte offset on; a negative
// length means up to the end. f must come from Get. Reading ends when ctx ends. The caller must
// close the reader.
//
// Every block is compared with its checksum before any of its bytes is returned, so damaged content
// fails with [ErrCorrupt] and never looks complete. With [Options.HashDownloads], a read of the
// whole file also compares its hash before the last block is returned. Open fails with [ErrCorrupt]
// if the blob is missing or has another size, and with [ErrUnavailable] if the blob store can't be
// used now.
func (s Files) Open(ctx context.Context, f *File, offset, length int64) (io.ReadCloser, error) {
	if s.s.blobs == nil {
		return nil, fmt.Errorf("formsvc: open file: %w", errors.ErrUnsupported)
	}
	r, err := s.open(ctx, f, offset, length, s.s.hashDownloads)
	if err != nil {
		return nil, fmt.Errorf("formsvc: open file: %w", err)
	}
	return r, nil
}

func (s Files) open(ctx context.Context, f *File, offset, length int64, hash bool) (*content, error) {
	if offset < 0 || offset > f.Size {
		return nil, fmt.Errorf("offset %d of a file of %d bytes: %w", offset, f.Size, ErrInvalid)
	}
	end := f.Size
	if length >= 0 {
		end = min(offset+length, f.Size)
	}
	c := &content{file: f, left: end - offset, table: castagnoli(), pool: s.s.blocks}
	if hash && offset == 0 && end == f.Size {
		c.hasher = newBlockHasher(s.s.pieces)
	}
	c.next = offset / BlockSize
	c.skip = int(offset % BlockSize)
	first := c.next * BlockSize
	last := min((end+BlockSize-1)/BlockSize*BlockSize, f.Size)
	body, info, err := s.s.blobs.Open(ctx, BlobKey(f.ID), first, max(last-first, 0))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: the blob is missing", ErrCorrupt)
	case err != nil:
		return nil, blobError(err)
	case info.Size != f.Size:
		_ = body.Close()
		return nil, fmt.Errorf("%w: the blob has %d bytes instead of %d", ErrCorrupt, info.Size, f.Size)
	}
	c.body = body
	return c, nil
}

// A content reads a part of a file block by block. While the caller reads one block, a goroutine
// reads and checks the next one; Close waits for it.
type content struct {
	body   io.ReadCloser
	file   *File
	table  *crc32.Table
	pool   *sync.Pool       // of *[BlockSize]byte
	hasher *blockHasher     // nil unless the whole file is read and its hash compared
	next   int64            // the block to be read next
	skip   int              // bytes of the first block that were not asked for
	left   int64            // bytes still to be returned
	block  []byte           // what is left of the current block
	room   *[BlockSize]byte // holds block
	spare  *[BlockSize]byte // for another one
	ahead  chan loaded      // delivers the block that is being read; nil if none is
	err    error
}

// A loaded is a block that has been read and checked.
type loaded struct {
	room *[BlockSize]byte // to be returned to the pool
	size int              // bytes in it
	err  error
}

// Read implements io.Reader.
func (c *content) Read(p []byte) (int, error) {
	if c.left == 0 && c.err == nil {
		c.err = io.EOF
	}
	if len(c.block) == 0 && c.err == nil {
		c.err = c.turn()
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
	if c.ahead != nil {
		c.spare = (<-c.ahead).room
		c.ahead = nil
	}
	for _, room := range []*[BlockSize]byte{c.room, c.spare} {
		if room != nil {
			c.pool.Put(room)
		}
	}
	c.room, c.spare, c.block = nil, nil, nil
	if c.hasher != nil {
		c.hasher.close()
	}
	c.err = cmp.Or(c.err, fs.ErrClosed)
	return c.body.Close()
}

// turn makes the next block the current one and starts to read the one after it.
func (c *content) turn() error {
	var got loaded
	if c.ahead != nil {
		got = <-c.ahead
		c.ahead = nil
	} else {
		got = c.load(nil)
	}
	c.room, c.spare = got.room, c.room
	if got.err != nil {
		return fmt.Errorf("formsvc: read file: %w", got.err)
	}
	c.block = got.room[c.skip:got.size]
	c.block = c.block[:min(int64(len(c.block)), c.left)]
	c.skip = 0
	if int64(len(c.block)) < c.left {
		ahead, room := make(chan loaded, 1), c.spare
		c.ahead, c.spare = ahead, nil
		go func() { ahead <- c.load(room) }()
	}
	return nil
}

// load reads the next block and checks it. Nil for room means a new one.
func (c *content) load(room *[BlockSize]byte) loaded {
	if room == nil {
		room = c.pool.Get().(*[BlockSize]byte)
	}
	b := loaded{room: room}
	b.size = int(min(BlockSize, c.file.Size-c.next*BlockSize))
	b.err = c.check(b.room[:b.size])
	return b
}

// check fills a block and compares it with its checksum.
func (c *content) check(block []byte) error {
	if _, err := io.ReadFull(c.body, block); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%w: the blob ends early", ErrCorrupt)
		}
		return blobError(err)
	}
	sums := c.file.Blocks
	if int64(len(sums)) < 4*(c.next+1) || binary.BigEndian.Uint32(sums[4*c.next:]) != crc32.Checksum(block, c.table) {
		return fmt.Errorf("%w: the block at byte %d has another checksum", ErrCorrupt, c.next*BlockSize)
	}
	c.next++
	if c.hasher == nil {
		return nil
	}
	c.hasher.write(block)
	if c.next*BlockSize < c.file.Size {
		return nil
	}
	if digest, _ := c.hasher.finish(); digest != c.file.SHA256 {
		return fmt.Errorf("%w: it has another hash", ErrCorrupt)
	}
	return nil
}
