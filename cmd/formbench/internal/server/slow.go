package server

import (
	"context"
	"sync"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/formsvc"
)

// A slowStore makes responses one after the other, each in a time that does not depend
// on the processor.
type slowStore struct {
	database.Store

	took time.Duration
	mu   sync.Mutex
}

// CreateResponse implements formsvc.Store.
func (s *slowStore) CreateResponse(ctx context.Context, r formsvc.Response, version int64, c formsvc.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	time.Sleep(s.took)
	return s.Store.CreateResponse(ctx, r, version, c)
}
