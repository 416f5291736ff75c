package bunstore

import (
	"fmt"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"
)

// CallersTx returns how to build and to run queries in a transaction of the caller's,
// which is a bun.Tx, a *sql.Tx or something around it that can be committed.
func CallersTx(tx bun.IConn, dialect schema.Dialect) (Builder, bun.IConn, error) {
	switch t := tx.(type) {
	case bun.Tx:
		return t, t.Tx, nil
	case interface {
		bun.IConn
		Commit() error
		Rollback() error
	}:
		// It only builds: every query is told its connection.
		return bun.NewDB(nil, dialect), t, nil
	default:
		return nil, nil, fmt.Errorf("want a *sql.Tx, a bun.Tx or another transaction, got a %T", tx)
	}
}
