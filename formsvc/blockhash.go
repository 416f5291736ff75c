package formsvc

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"hash/crc32"
	"sync"
)

// castagnoli returns the table of CRC-32C; hash/crc32 builds it only once.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// newBlock returns a block for a sync.Pool.
func newBlock() any { return new([BlockSize]byte) }

// A piece is what a blockHasher hashes at once, a quarter of a block: a client that stops in the middle of its upload holds four of them.
type piece [BlockSize / 4]byte

// pieces is how many pieces a long upload has: one is filled, one is hashed, and two wait.
const pieces = 4

// newPiece returns a piece for a sync.Pool.
func newPiece() any { return new(piece) }

// A blockHasher computes the SHA-256 of what is written to it and the CRC-32C of every block. It
// hashes in its own goroutine while the next piece is filled, since hashing takes as long as
// receiving. The goroutine ends with finish or close; one of them must be called.
type blockHasher struct {
	pool *sync.Pool    // of *piece
	held *piece        // nil while the goroutine has all of them
	n    int           // bytes in it
	done chan struct{} // closed when the goroutine has ended; nil while there is none

	full, empty chan *piece // to the goroutine and back

	// Used by the goroutine while there is one.
	hash   hash.Hash
	table  *crc32.Table
	sum    uint32 // of the block that has begun
	begun  int    // bytes of it
	blocks []byte
}

func newBlockHasher(pool *sync.Pool) *blockHasher {
	return &blockHasher{pool: pool, hash: sha256.New(), table: castagnoli()}
}

func (h *blockHasher) write(p []byte) {
	for len(p) > 0 {
		switch {
		case h.held != nil:
		case h.done != nil:
			h.held = <-h.empty
		default:
			h.held = h.pool.Get().(*piece)
		}
		n := copy(h.held[h.n:], p)
		p = p[n:]
		if h.n += n; h.n == len(h.held) {
			h.start()
			h.full <- h.held
			h.held, h.n = nil, 0
		}
	}
}

func (h *blockHasher) start() {
	if h.done != nil {
		return
	}
	h.full, h.empty, h.done = make(chan *piece, pieces), make(chan *piece, pieces), make(chan struct{})
	for range pieces - 1 {
		h.empty <- h.pool.Get().(*piece)
	}
	go func() {
		defer close(h.done)
		for p := range h.full {
			h.add(p[:])
			h.empty <- p
		}
	}()
}

// add hashes a piece. All but the last one are full, so each block ends with one of them.
func (h *blockHasher) add(p []byte) {
	_, _ = h.hash.Write(p) // never fails
	h.sum, h.begun = crc32.Update(h.sum, h.table, p), h.begun+len(p)
	if h.begun == BlockSize {
		h.endBlock()
	}
}

func (h *blockHasher) endBlock() {
	h.blocks = binary.BigEndian.AppendUint32(h.blocks, h.sum)
	h.sum, h.begun = 0, 0
}

// finish returns the SHA-256 and the checksums of the blocks.
func (h *blockHasher) finish() (digest [sha256.Size]byte, blocks []byte) {
	h.join()
	if h.n > 0 {
		h.add(h.held[:h.n])
	}
	if h.begun > 0 {
		h.endBlock()
	}
	h.close()
	h.hash.Sum(digest[:0])
	return digest, h.blocks
}

// close ends the goroutine and returns the pieces to the pool. It may be called more than once.
func (h *blockHasher) close() {
	h.join()
	if h.held != nil {
		h.pool.Put(h.held)
		h.held, h.n = nil, 0
	}
}

func (h *blockHasher) join() {
	if h.done == nil {
		return
	}
	close(h.full)
	<-h.done
	h.done = nil
	close(h.empty)
	for p := range h.empty {
		h.pool.Put(p)
	}
}
