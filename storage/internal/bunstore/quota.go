package bunstore

import (
	"context"
	"errors"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// TakeQuota implements formsvc.QuotaStore.
func (s *Store) TakeQuota(ctx context.Context, q formsvc.QuotaQuery) (formsvc.QuotaGrant, error) {
	return formsvc.QuotaGrant{}, errors.ErrUnsupported
}

// ReturnQuota implements formsvc.QuotaStore.
func (s *Store) ReturnQuota(ctx context.Context, list []formsvc.QuotaReturn) error {
	return errors.ErrUnsupported
}

// QuotaUse implements formsvc.QuotaStore.
func (s *Store) QuotaUse(ctx context.Context, subject formsvc.ID, since time.Time) ([]formsvc.QuotaUse, error) {
	return nil, errors.ErrUnsupported
}

// PruneQuota implements formsvc.QuotaStore.
func (s *Store) PruneQuota(ctx context.Context, before time.Time, limit int) (int, error) {
	return 0, errors.ErrUnsupported
}
