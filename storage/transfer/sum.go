package transfer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math/bits"
)

// A sum is a checksum of the rows of a table, in any order: the sum of their SHA-256.
type sum struct {
	rows int64
	hash [4]uint64
}

func (s *sum) add(t *table, row []any) {
	kept := make([]any, len(row))
	for i, v := range row {
		if t.kept(i) {
			kept[i] = v
		}
	}
	b, _ := json.Marshal(kept) // a column is a number, a text or bytes in each database
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
