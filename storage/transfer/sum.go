package transfer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/formsvc/toolkit/formsvc"
)

// A sum is a checksum of the rows of a table, in any order: the sum of their SHA-256.
type sum struct {
	rows int64
	hash [4]uint64
}

func (s *sum) add(t *table, row []any) {
	var b []byte
	for i, v := range row {
		if !t.kept(i) {
			continue
		}
		switch v := v.(type) {
		case nil:
			b = append(b, 'n')
		case int64:
			b = binary.BigEndian.AppendUint64(append(b, 'i'), uint64(v)) //nolint:gosec // keeps all 64 bits
		case string:
			b = append(binary.BigEndian.AppendUint64(append(b, 's'), uint64(len(v))), v...)
		case []byte:
			b = append(binary.BigEndian.AppendUint64(append(b, 'b'), uint64(len(v))), v...)
		}
	}
	digest := sha256.Sum256(b)
	s.rows++
	var carry uint64
	for i := range s.hash {
		s.hash[i], carry = bits.Add64(s.hash[i], binary.LittleEndian.Uint64(digest[i*8:]), carry)
	}
}

// sizeOf returns about how many bytes of memory a row takes.
func sizeOf(row []any) int {
	n := 16 * len(row)
	for _, v := range row {
		switch v := v.(type) {
		case string:
			n += len(v)
		case []byte:
			n += len(v)
		}
	}
	return n
}

// checked returns a reader that fails with formsvc.ErrCorrupt in place of io.EOF if the bytes aren't those of the file.
func checked(in io.Reader, f *formsvc.File) io.Reader {
	h := sha256.New()
	in = io.TeeReader(in, h)
	return readerFunc(func(p []byte) (int, error) {
		n, err := in.Read(p)
		if errors.Is(err, io.EOF) && !bytes.Equal(h.Sum(nil), f.SHA256[:]) {
			return n, fmt.Errorf("%w: its SHA-256 differs", formsvc.ErrCorrupt)
		}
		return n, err
	})
}

type readerFunc func([]byte) (int, error)

func (r readerFunc) Read(p []byte) (int, error) { return r(p) }
