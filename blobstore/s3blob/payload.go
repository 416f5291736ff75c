package s3blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
)

// A payload is the content of one attempt of a request. The HTTP client may read it even after the
// request has failed, so it is detached from its bytes before these are reused. It can't seek,
// because package minio would then repeat the request with the same payload.
type payload struct {
	mu    sync.Mutex
	data  []byte
	ended bool
}

var errEnded = errors.New("the request has ended")

// Read implements io.Reader.
func (p *payload) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		return 0, errEnded
	case len(p.data) == 0:
		return 0, io.EOF
	}
	n := copy(b, p.data)
	p.data = p.data[n:]
	return n, nil
}

func (p *payload) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.data, p.ended = nil, true
}

// digest lets the server verify a payload: by a CRC-32C, or a SHA-256 if the connection isn't
// encrypted, where it is signed and so also detects tampering.
func (s *Store) digest(data []byte) (crc32c, sha256Hex string) {
	if s.secure {
		return minio.ChecksumCRC32C.ChecksumBytes(data).Encoded(), ""
	}
	sum := sha256.Sum256(data)
	return "", hex.EncodeToString(sum[:])
}

// send makes a request with content, and retries temporary errors.
func (s *Store) send(ctx context.Context, data []byte, do func(context.Context, io.Reader) error) error {
	err := s.call(ctx, s.limit(int64(len(data))), func(ctx context.Context) error {
		return repeat(ctx, passing, func() error {
			p := &payload{data: data}
			defer p.end()
			return do(ctx, p)
		})
	})
	return noAnswer(err)
}

// repeat calls do until it succeeds, fails with a permanent error, or has been called often enough.
func repeat(ctx context.Context, passing func(error) bool, do func() error) error {
	for attempt := 1; ; attempt++ {
		err := do()
		if err == nil || attempt == attempts || !passing(err) {
			return err
		}
		longest := 200 * time.Millisecond << attempt
		select {
		case <-time.After(longest/2 + rand.N(longest/2)): //nolint:gosec // nobody gains by guessing it
		case <-ctx.Done():
			return err
		}
	}
}
