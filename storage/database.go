package storage

import (
	"context"
	"database/sql"
	"time"
)

// A Migration is a step of the schema of a SQL store.
type Migration struct {
	Version   int // 1 for the first step
	Name      string
	AppliedAt time.Time // zero: not applied
}

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
	// fails with formsvc.ErrMoved once a copy of the data to another database has begun.
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
