package memory

import (
	"context"
	"errors"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateComment implements [formsvc.CommentStore].
func (s *Store) CreateComment(ctx context.Context, c formsvc.Comment, change formsvc.Change) error {
	return errors.ErrUnsupported
}

// Comments implements [formsvc.CommentStore].
func (s *Store) Comments(ctx context.Context, q formsvc.CommentQuery) (formsvc.Page[formsvc.Comment], error) {
	return formsvc.Page[formsvc.Comment]{}, errors.ErrUnsupported
}
