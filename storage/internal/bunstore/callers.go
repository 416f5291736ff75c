package bunstore

import (
	"database/sql"
	"fmt"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"
)

// CallersTx returns how to build and to run queries in a transaction of the caller's,
// which is a bun.Tx or a *sql.Tx.
func CallersTx(tx bun.IConn, dialect schema.Dialect) (Builder, bun.IConn, error) {
	switch t := tx.(type) {
	case bun.Tx:
		return t, t.Tx, nil
	case *sql.Tx:
		// It only builds: every query is told its connection.
		return bun.NewDB(nil, dialect), t, nil
	default:
		return nil, nil, fmt.Errorf("want a *sql.Tx or a bun.Tx, got a %T", tx)
	}
}
