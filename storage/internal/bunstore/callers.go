package bunstore

import (
	"errors"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"
)

// A Tx is a transaction of the caller.
type Tx interface {
	bun.IConn
	Commit() error
	Rollback() error
}

// CallersTx returns how to build and run queries in a transaction of the caller.
func CallersTx(tx Tx, dialect schema.Dialect) (Builder, bun.IConn, error) {
	switch t := tx.(type) {
	case nil:
		return nil, nil, errors.New("a transaction is required")
	case bun.Tx:
		return t, t.Tx, nil
	}
	// The bun.DB only builds queries; each one is given its connection.
	return bun.NewDB(nil, dialect), tx, nil
}
