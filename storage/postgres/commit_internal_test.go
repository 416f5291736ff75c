package postgres

import (
	"context"
	"errors"
	"testing"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// After a statement failed and its error was ignored, the server rolls back at the commit
// without an error.
func TestCommitOfAbortedTransactionFails(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), postgrestest.DSN(t), nil)
	noError(t, err)
	defer func() { _ = s.Close() }()
	err = s.tx.Run(t.Context(), func(ctx context.Context, c bun.IConn) error {
		_, _ = c.ExecContext(ctx, "SELECT 1 / 0")
		return nil
	})
	if err == nil || errors.Is(err, formsvc.ErrUnknownOutcome) {
		t.Errorf("the commit of an aborted transaction: %v, want an error that says that nothing happened", err)
	}
}
