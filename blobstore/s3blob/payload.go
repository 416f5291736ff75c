package s3blob

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

// A payload is the content of one attempt at a request. The HTTP client may
// read it even after the request has failed, so its bytes are taken away from
// it before they are used for anything else. It can't seek: package minio would
// repeat the request with the same payload then.
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

// A digest is what the server checks a payload against.
type digest struct {
	sha256Hex string // over http, where it is signed and so protects against more than accidents
	crc32c    string // over https, which does that itself
}

func (s *Store) digest(data []byte) digest {
	if s.secure {
		sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
		return digest{crc32c: base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))}
	}
	sum := sha256.Sum256(data)
	return digest{sha256Hex: hex.EncodeToString(sum[:])}
}

// send makes a request with content, again if it fails in a way that may pass.
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

// repeat does something until it succeeds, fails in a way that won't pass, or
// has been done often enough.
func repeat(ctx context.Context, passing func(error) bool, do func() error) error {
	for attempt := 1; ; attempt++ {
		err := do()
		if err == nil || attempt == attempts || !passing(err) || !pause(ctx, attempt) {
			return err
		}
	}
}

// pause waits before another attempt, and reports whether there may be one.
func pause(ctx context.Context, attempt int) bool {
	longest := 200 * time.Millisecond << attempt
	timer := time.NewTimer(longest/2 + rand.N(longest/2)) //nolint:gosec // nobody gains by guessing it
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
