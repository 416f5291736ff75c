package formsvc

import (
	"errors"
	"fmt"
)

// A LimitError says that an account has as many records of a kind as it may. It is an [ErrLimit].
type LimitError struct {
	Kind  string // "campaigns", "keys" or "webhooks"
	Limit int
}

// Error names the kind and the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the account has %d %s, which is as many as it may", e.Limit, e.Kind)
}

// Is reports whether target is [ErrLimit].
func (e *LimitError) Is(target error) bool { return target == ErrLimit }

// limited adds the kind and the limit to a store's [ErrLimit].
func limited(err error, kind string, limit int) error {
	if errors.Is(err, ErrLimit) {
		return &LimitError{Kind: kind, Limit: limit}
	}
	return err
}
