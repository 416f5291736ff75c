package bunstore

import (
	"errors"

	"github.com/formsvc/toolkit/storage"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"
)

// CallersTx returns how to build and run queries in a transaction of the caller.
func CallersTx(tx storage.Tx, dialect schema.Dialect) (Builder, bun.IConn, error) {
	switch t := tx.(type) {
	case nil:
		return nil, nil, errors.New("a transaction is required")
	case bun.Tx:
		return t, t.Tx, nil
	}
	// The bun.DB only builds queries; each one is given its connection.
	return bun.NewDB(nil, dialect), tx, nil
}
