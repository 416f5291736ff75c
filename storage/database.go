package storage

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// A Migration is a step of the schema of a SQL store.
type Migration struct {
	Version   int // 1 for the first step
	Name      string
	AppliedAt time.Time // zero: not applied
}

// ErrSchemaNewer means that a later release has migrated the database further. A step that only adds to the schema names the
// oldest version that can still be used beside it: this release goes on if its own is at least that, and otherwise must not
// write.
var ErrSchemaNewer = errors.New("the database schema is newer than this release")

// A Tx is a transaction of an embedding program: a *sql.Tx, a bun.Tx or a wrapper, such as
// the ConnPool of a transaction of gorm.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Commit() error
	Rollback() error
}

// A Database has what the SQL stores offer beyond the contract, for programs that run a
// database.
type Database interface {
	// Ping returns nil if the database can be reached, has a schema and may be used. It
	// fails with formsvc.ErrMoved once a copy of the data to another database has begun. If the
	// schema is newer and this release can work with it, it fails with a *formsvc.DegradedError
	// that is ErrSchemaNewer and names "schema": all calls work.
	Ping(ctx context.Context) error
	// CheckKeys checks that the keyring has every key that values in this database are
	// sealed under. It fails with keyring.ErrUnknownKey, naming the missing keys. Open calls
	// it after migrating. A value that can't be opened is shown as empty, and nothing is
	// sent to its webhook until it gets another one.
	CheckKeys(ctx context.Context) error
	// RotateSecrets seals all secrets and headers of webhooks again that aren't sealed
	// under the first key of the keyring, including those stored in plain text. It returns
	// how many webhooks it changed. When it returns nil, the other keys can be removed from
	// the keyring, if every process that uses the database seals with the first one. Webhooks
	// may be used meanwhile; changes of them wait. It fails if there is no key or if a value can't be
	// opened; all other values are still sealed again.
	RotateSecrets(ctx context.Context) (changed int, err error)
}
