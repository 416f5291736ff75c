package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
)

// warmSize is the size of the file that is uploaded and downloaded before memory is measured.
const warmSize = 1_000_000

// burstShare makes the files of a burst smaller than the others: 20 MB by
// default.
const burstShare = 5

// A Mover moves files to and from a system, over one connection.
type Mover interface {
	// Upload stores a file. It fails unless the system acknowledges exactly the bytes that were sent.
	Upload(ctx context.Context, c *Content) (id string, err error)
	// Download writes a file to w and returns its length.
	Download(ctx context.Context, id string, w io.Writer) (int64, error)
	io.Closer
}

// newMover returns a mover with a time limit for this many bytes.
func (s *Scene) newMover(ctx context.Context, bytes int64) (Mover, error) {
	if s.cell.System == bench.MinioSystem {
		return newDirect(s.s3)
	}
	if s.peer != nil {
		return s.peer.NewMover(ctx, s.Server.Addr, bytes)
	}
	return newCourier(ctx, s, bytes)
}

// move measures n uploads after a warm-up and checks the stored files, or n downloads of one file.
func (s *Scene) move(ctx context.Context, n int, size int64, down bool) error {
	c := s.content(size)
	return s.within(ctx, int64(n+2)*size, func(m Mover) error {
		id, err := s.upload(ctx, m, c)
		if err != nil {
			return err
		}
		err = s.watched(n, size, func() (err error) {
			for i := 0; i < n && err == nil; i++ {
				if down {
					err = fetch(ctx, m, id, c)
				} else {
					id, err = s.upload(ctx, m, c)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		return verify(ctx, m, id, c)
	})
}

// Large measures the growth of the server's memory over that of a small file, when a large file is uploaded, or
// uploaded and downloaded.
func (s *Scene) Large(ctx context.Context, size int64, down bool) error {
	c, files := s.content(size), 1
	if down {
		files = 2
	}
	return s.within(ctx, 2*(size+warmSize), func(m Mover) error {
		before, err := s.warm(ctx, m)
		if err != nil {
			return err
		}
		id, up := "", 0.0
		err = s.watched(files, size, func() error {
			if id, err = s.upload(ctx, m, c); err != nil || !down {
				return err
			}
			if up, err = s.peak(); err != nil {
				return err
			}
			return verify(ctx, m, id, c)
		})
		if err != nil {
			return err
		}
		if err := s.grown(before); err != nil || down {
			s.cell.Add("grown-by-uploading-MB", up-before)
			return err
		}
		return verify(ctx, m, id, c)
	})
}

// burst measures the growth of memory for n concurrent uploads.
func (s *Scene) burst(ctx context.Context, n int, size int64) error {
	c := s.content(size)
	all := int64(n)*size + 2*warmSize
	return s.within(ctx, all, func(m Mover) error {
		before, err := s.warm(ctx, m)
		if err != nil {
			return err
		}
		err = s.watched(n, size, func() error { return s.atOnce(ctx, n, all, c) })
		return errors.Join(err, s.grown(before))
	})
}

// grown notes the growth of the peak memory over a base.
func (s *Scene) grown(before float64) error {
	peak, err := s.peak()
	s.cell.Add("grown-MB", peak-before)
	return err
}

// atOnce uploads n files over as many connections.
func (s *Scene) atOnce(ctx context.Context, n int, patience int64, c *Content) error {
	var group errgroup.Group
	start := make(chan struct{}) // when all are connected
	for range n {
		m, err := s.newMover(ctx, patience)
		if err != nil {
			return err
		}
		defer func() { _ = m.Close() }() // its uploads were acknowledged, or have failed
		group.Go(func() error {
			<-start
			_, err := m.Upload(ctx, c)
			return err
		})
	}
	close(start)
	if err := group.Wait(); err != nil {
		return fmt.Errorf("uploads at once: %w", err)
	}
	s.stored += n
	return nil
}

// warm transfers a small file and returns the peak memory afterwards.
func (s *Scene) warm(ctx context.Context, m Mover) (float64, error) {
	c := s.content(warmSize)
	id, err := s.upload(ctx, m, c)
	if err != nil {
		return 0, err
	}
	if err := verify(ctx, m, id, c); err != nil {
		return 0, err
	}
	return s.peak()
}

// within calls do with a mover for this many bytes, and checks that the database has the acknowledged files.
func (s *Scene) within(ctx context.Context, bytes int64, do func(Mover) error) error {
	m, err := s.newMover(ctx, bytes)
	if err != nil {
		return err
	}
	if err := errors.Join(do(m), m.Close()); err != nil {
		return err
	}
	return s.holds(ctx)
}

func (s *Scene) upload(ctx context.Context, m Mover, c *Content) (string, error) {
	id, err := m.Upload(ctx, c)
	if err == nil {
		s.stored++
	}
	return id, err
}

// fetch downloads a file and compares the length.
func fetch(ctx context.Context, m Mover, id string, c *Content) error {
	n, err := m.Download(ctx, id, nowhere{})
	if err == nil && n != c.Size {
		err = fmt.Errorf("a download of %d bytes, want %d", n, c.Size)
	}
	return err
}

// verify downloads a file and compares all of it.
func verify(ctx context.Context, m Mover, id string, c *Content) error {
	hash := sha256.New()
	n, err := m.Download(ctx, id, hash)
	if err != nil {
		return err
	}
	if sum := hex.EncodeToString(hash.Sum(nil)); n != c.Size || sum != c.sum {
		return fmt.Errorf("a download of %d bytes with SHA-256 %s, want %d with %s", n, sum, c.Size, c.sum)
	}
	return nil
}

// nowhere accepts everything. Unlike io.Discard it lets io.Copy choose the size of reads, as a file does.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
