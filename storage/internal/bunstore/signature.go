package bunstore

import (
	"context"
	"errors"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateSignature implements formsvc.SignatureStore.
func (s *Store) CreateSignature(
	ctx context.Context, sig formsvc.Signature, decide func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error),
) (formsvc.Signature, error) {
	return formsvc.Signature{}, errors.ErrUnsupported
}

// Signatures implements formsvc.SignatureStore.
func (s *Store) Signatures(ctx context.Context, q formsvc.SignatureQuery) (formsvc.Page[formsvc.Signature], error) {
	return formsvc.Page[formsvc.Signature]{}, errors.ErrUnsupported
}

// SignaturesBy implements formsvc.SignatureStore.
func (s *Store) SignaturesBy(ctx context.Context, account formsvc.ID, email string, after formsvc.ID, limit int) ([]formsvc.Signature, error) {
	return nil, errors.ErrUnsupported
}
