package s3blob

import (
	"context"
	"time"
)

// Prefix returns the prefix of the store's objects.
func (s *Store) Prefix() string { return s.prefix }

// Held returns the number of part buffers in use, and their limit.
func (s *Store) Held() (held, limit int) { return len(s.held), cap(s.held) }

// WaitForBuffer gets a buffer and returns it.
func (s *Store) WaitForBuffer(ctx context.Context, limit time.Duration) error {
	buf, err := s.acquire(ctx, limit)
	if err == nil {
		s.release(buf)
	}
	return err
}
