package memory

import (
	"context"
	"errors"

	"github.com/formsvc/toolkit/formsvc"
)

// EraseResponses implements [formsvc.ErasureStore].
func (s *Store) EraseResponses(ctx context.Context, account formsvc.ID, keys []formsvc.ResponseKey, change formsvc.Change) (formsvc.Erased, error) {
	return formsvc.Erased{}, errors.ErrUnsupported
}

// EraseSignatures implements [formsvc.ErasureStore].
func (s *Store) EraseSignatures(ctx context.Context, account formsvc.ID, ids []formsvc.ID, change formsvc.Change) (formsvc.Erased, error) {
	return formsvc.Erased{}, errors.ErrUnsupported
}

// EraseEvents implements [formsvc.ErasureStore].
func (s *Store) EraseEvents(ctx context.Context, account formsvc.ID, ids []formsvc.ID, change formsvc.Change) (formsvc.Erased, error) {
	return formsvc.Erased{}, errors.ErrUnsupported
}

// CountErasure implements [formsvc.ErasureStore].
func (s *Store) CountErasure(ctx context.Context, account formsvc.ID, keys []formsvc.ResponseKey) (formsvc.Erased, error) {
	return formsvc.Erased{}, errors.ErrUnsupported
}
