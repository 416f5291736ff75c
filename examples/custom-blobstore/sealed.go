package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/bits"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/fileblob"
)

// A sealed store encrypts with AES-CTR. That hides the content; formsvc checks its
// integrity. The embedded store does the rest, including methods outside of the contract,
// such as Clean.
type sealed struct {
	*fileblob.Store
	block cipher.Block
}

func (s *sealed) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	return s.Store.Put(ctx, key, cipher.StreamReader{S: s.stream(key, 0), R: r})
}

func (s *sealed) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blobstore.Info, error) {
	r, info, err := s.Store.Open(ctx, key, offset, length)
	if err != nil {
		return nil, info, err
	}
	return opened{cipher.StreamReader{S: s.stream(key, offset), R: r}, r}, info, nil
}

type opened struct {
	io.Reader
	io.Closer
}

// stream returns the cipher stream of a blob from an offset on, which encrypts and
// decrypts. Each blob has a key of its own that is never used again.
func (s *sealed) stream(key string, offset int64) cipher.Stream {
	iv := sha256.Sum256([]byte(key))
	blocks, rest := uint64(offset)/aes.BlockSize, offset%aes.BlockSize //nolint:gosec // offset is not negative
	low, carry := bits.Add64(binary.BigEndian.Uint64(iv[8:]), blocks, 0)
	binary.BigEndian.PutUint64(iv[8:], low)
	binary.BigEndian.PutUint64(iv[:], binary.BigEndian.Uint64(iv[:])+carry)
	stream := cipher.NewCTR(s.block, iv[:aes.BlockSize])
	stream.XORKeyStream(make([]byte, rest), make([]byte, rest))
	return stream
}

// newSealed takes the key as 64 hexadecimal digits.
func newSealed(files *fileblob.Store, key string) (*sealed, error) {
	raw, err := hex.DecodeString(key)
	if err != nil || len(raw) != 32 {
		return nil, fmt.Errorf("FILES_KEY must be 64 hexadecimal digits, not %d characters", len(key))
	}
	block, err := aes.NewCipher(raw)
	return &sealed{files, block}, err
}
