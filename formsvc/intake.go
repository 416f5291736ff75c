package formsvc

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"hash/crc32"
	"io"
)

// BlockSize is how many bytes of a file are checked together (see
// [File.Blocks]).
const BlockSize = 256 << 10

// An intake reads the content of a new file: it counts, hashes and judges what
// passes through. Whoever reads from it sees io.EOF only when all is as it
// should be, and so never keeps what is not.
type intake struct {
	in    *FileInput
	limit int64
	hash  hash.Hash
	table *crc32.Table
	crc   uint32 // of the block that is under way
	ended error  // what the end is: io.EOF or an error

	// What is known of the content, complete at io.EOF.
	size   int64
	digest [sha256.Size]byte
	blocks []byte
}

func newIntake(in *FileInput, limit int64) *intake {
	return &intake{in: in, limit: limit, hash: sha256.New(), table: crc32.MakeTable(crc32.Castagnoli)}
}

// Read implements io.Reader.
func (t *intake) Read(p []byte) (int, error) {
	if t.ended != nil {
		return 0, t.ended
	}
	n, err := t.in.Content.Read(p)
	t.add(p[:n])
	switch {
	case t.size > t.limit:
		t.ended = &FileSizeError{Limit: t.limit}
	case err == nil:
		return n, nil
	case err == io.EOF: // an error that only wraps it tells of a cut, not of the end
		t.ended = t.end()
	default:
		t.ended = err
	}
	return n, t.ended
}

func (t *intake) add(p []byte) {
	_, _ = t.hash.Write(p) // never fails
	for len(p) > 0 {
		n := min(len(p), BlockSize-int(t.size%BlockSize))
		t.crc = crc32.Update(t.crc, t.table, p[:n])
		t.size += int64(n)
		p = p[n:]
		if t.size%BlockSize == 0 {
			t.endBlock()
		}
	}
}

func (t *intake) endBlock() {
	t.blocks = binary.BigEndian.AppendUint32(t.blocks, t.crc)
	t.crc = 0
}

// end judges what was read.
func (t *intake) end() error {
	if t.size%BlockSize != 0 {
		t.endBlock()
	}
	t.hash.Sum(t.digest[:0])
	if t.in.SHA256 != nil && *t.in.SHA256 != t.digest {
		return ErrDigest
	}
	if t.in.Complete != nil {
		if err := t.in.Complete(t.in); err != nil {
			return err
		}
		if err := t.in.check(); err != nil {
			return err
		}
	}
	return io.EOF
}
