package bunstore

import (
	"errors"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"
)

// A Tx is a transaction of the caller's.
type Tx interface {
	bun.IConn
	Commit() error
	Rollback() error
}

// CallersTx returns how to build and to run queries in a transaction of the caller's.
func CallersTx(tx Tx, dialect schema.Dialect) (Builder, bun.IConn, error) {
	switch t := tx.(type) {
	case nil:
		return nil, nil, errors.New("a transaction is required")
	case bun.Tx:
		return t, t.Tx, nil
	}
	// It only builds: every query is told its connection.
	return bun.NewDB(nil, dialect), tx, nil
}
