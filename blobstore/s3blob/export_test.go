package s3blob

import (
	"context"
	"time"
)

// Prefix returns what the names of the store's objects begin with.
func (s *Store) Prefix() string { return s.prefix }

// Held returns how many part buffers are handed out now, and how many there are
// at most.
func (s *Store) Held() (held, limit int) { return len(s.buffers.held), cap(s.buffers.held) }

// WaitForBuffer gets a buffer and gives it back.
func (s *Store) WaitForBuffer(ctx context.Context, limit time.Duration) error {
	buf, err := s.buffers.get(ctx, limit)
	if err == nil {
		s.buffers.put(buf)
	}
	return err
}
