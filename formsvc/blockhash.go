package formsvc

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"hash/crc32"
	"sync"
)

// castagnoli returns the table of CRC-32C, of which hash/crc32 has one only.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// newBlock is what a pool of blocks makes.
func newBlock() any { return new([BlockSize]byte) }

// A blockHasher finds out the SHA-256 of what is written to it and the CRC-32C of
// every block. It hashes in a goroutine of its own while the next block is
// gathered, since hashing takes as long as receiving. The goroutine ends with
// finish or close; one of them must be called.
type blockHasher struct {
	pool  *sync.Pool       // of *[BlockSize]byte
	block *[BlockSize]byte // nil while all are with the goroutine
	n     int              // bytes in it
	done  chan struct{}    // closed when the goroutine has ended; nil while there is none

	full, empty chan *[BlockSize]byte // to the goroutine and back

	// Of the goroutine while there is one.
	hash   hash.Hash
	table  *crc32.Table
	blocks []byte
}

func newBlockHasher(pool *sync.Pool) *blockHasher {
	return &blockHasher{pool: pool, hash: sha256.New(), table: castagnoli()}
}

func (h *blockHasher) write(p []byte) {
	for len(p) > 0 {
		switch {
		case h.block != nil:
		case h.done != nil:
			h.block = <-h.empty
		default:
			h.block = h.pool.Get().(*[BlockSize]byte)
		}
		n := copy(h.block[h.n:], p)
		p = p[n:]
		if h.n += n; h.n == BlockSize {
			h.start()
			h.full <- h.block
			h.block, h.n = nil, 0
		}
	}
}

func (h *blockHasher) start() {
	if h.done != nil {
		return
	}
	h.full, h.empty, h.done = make(chan *[BlockSize]byte), make(chan *[BlockSize]byte, 2), make(chan struct{})
	h.empty <- h.pool.Get().(*[BlockSize]byte)
	go func() {
		defer close(h.done)
		for block := range h.full {
			h.add(block[:])
			h.empty <- block
		}
	}()
}

func (h *blockHasher) add(block []byte) {
	_, _ = h.hash.Write(block) // never fails
	h.blocks = binary.BigEndian.AppendUint32(h.blocks, crc32.Checksum(block, h.table))
}

// finish returns what was found out.
func (h *blockHasher) finish() (digest [sha256.Size]byte, blocks []byte) {
	h.join()
	if h.n > 0 {
		h.add(h.block[:h.n])
	}
	h.close()
	h.hash.Sum(digest[:0])
	return digest, h.blocks
}

// close ends the goroutine and gives the blocks back. It may be called again.
func (h *blockHasher) close() {
	h.join()
	if h.block != nil {
		h.pool.Put(h.block)
		h.block, h.n = nil, 0
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
	for block := range h.empty {
		h.pool.Put(block)
	}
}
