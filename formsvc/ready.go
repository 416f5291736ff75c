package formsvc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// readyTimeout limits Ready, because load balancers don't wait long for a health check.
const readyTimeout = 3 * time.Second

// A DegradedError says that requests which need some component fail, and that all others work.
type DegradedError struct {
	// Components names them: "files" is the blob store.
	Components []string
	// Err is the cause.
	Err error
}

// Error names the components and the cause.
func (e *DegradedError) Error() string {
	return strings.Join(e.Components, ", ") + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *DegradedError) Unwrap() error { return e.Err }

// Ready returns nil if the store and the blob store, if there is one, reply within 3 seconds. If only the blob store fails, the error
// is a [*DegradedError]: requests that don't read or write the content of files work.
func (s *Service) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	blobs := make(chan error, 1)
	go func() { blobs <- s.blobsReady(ctx) }()
	// A store without an identity is reachable, too.
	if _, err := s.core.store.Identity(ctx); err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("formsvc: store: %w", err)
	}
	var err error
	select {
	case err = <-blobs:
	case <-ctx.Done(): // a file system on a network can ignore the context
		err = blobError(ctx.Err())
	}
	if err != nil {
		return &DegradedError{Components: []string{"files"}, Err: fmt.Errorf("formsvc: blobs: %w", err)}
	}
	return nil
}

func (s *Service) blobsReady(ctx context.Context) error {
	if s.core.Blobs == nil {
		return nil
	}
	if _, err := s.core.Blobs.Stat(ctx, "ready"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return blobError(err)
	}
	return nil
}
