package postgres

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/formsvc/toolkit/formsvc"
)

// These include codes that a test can't make a server return.
func TestClassify(t *testing.T) {
	t.Parallel()
	kinds := []error{
		formsvc.ErrNoSpace, formsvc.ErrUnavailable, formsvc.ErrUnknownOutcome, formsvc.ErrConflict, formsvc.ErrNotFound, formsvc.ErrInvalid,
	}
	for code, want := range map[string]error{
		"53100": formsvc.ErrNoSpace,     // disk_full
		"53200": formsvc.ErrUnavailable, // out_of_memory
		"53300": formsvc.ErrUnavailable, // too_many_connections
		"57P01": formsvc.ErrUnavailable, // admin_shutdown
		"40P01": formsvc.ErrUnavailable, // deadlock_detected
		"23505": formsvc.ErrConflict,    // unique_violation
		"42601": nil,                    // syntax_error: a bug in this package
	} {
		cause := &pgconn.PgError{Code: code, Severity: "ERROR"}
		err := (*backend)(nil).Classify(fmt.Errorf("a unit: %w", cause))
		if !errors.Is(err, cause) {
			t.Errorf("%s: %v has lost its cause", code, err)
		}
		for _, kind := range kinds {
			if errors.Is(err, kind) != errors.Is(want, kind) {
				t.Errorf("%s: %v, want %v", code, err, want)
			}
		}
	}
}

// A connection that broke is a failure of the connection.
func TestConnectionClosed(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("commit: %w", pgconn.ErrConnClosed)
	if !errors.Is((*backend)(nil).Classify(err), formsvc.ErrUnavailable) {
		t.Errorf("%v is not taken for a failure of the connection", err)
	}
}
