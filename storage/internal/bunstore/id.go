package bunstore

import (
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/uptrace/bun/dialect"
	"github.com/uptrace/bun/schema"

	"github.com/formsvc/toolkit/formsvc"
)

// An ID is an identifier in bun's queries and models: a uuid of Postgres, 16 bytes in
// SQLite, NULL if it is empty. Scan reads it from both.
type ID formsvc.ID

// AppendQuery implements schema.QueryAppender. Text that isn't a canonical identifier is NULL, which no record has.
func (id ID) AppendQuery(gen schema.QueryGen, b []byte) ([]byte, error) {
	switch {
	case !formsvc.ID(id).Valid():
		return append(b, "NULL"...), nil
	case gen.Dialect().Name() == dialect.PG:
		return append(append(append(b, '\''), id...), '\''), nil
	}
	b = hex.AppendEncode(append(b, "X'"...), id.Bytes())
	return append(b, '\''), nil
}

// Bytes returns the 16 bytes of the identifier, or nil for none.
func (id ID) Bytes() []byte {
	u, err := uuid.Parse(string(id))
	if err != nil {
		return nil
	}
	return u[:]
}

// Scan implements sql.Scanner.
func (id *ID) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*id = ""
	case string:
		*id = ID(v)
	case []byte:
		u, err := uuid.FromBytes(v)
		if err != nil {
			return err
		}
		*id = ID(u.String())
	default:
		return fmt.Errorf("bunstore: an identifier is a %T", src)
	}
	return nil
}

// IDs are the identifiers of the events that a response was created with.
type IDs []ID

// eventIDs returns the stored form of the IDs of a change: 16 bytes each.
func eventIDs(change *formsvc.Change) []byte {
	ids := make([]byte, 0, len(change.Events)*len(uuid.UUID{}))
	for i := range change.Events {
		ids = append(ids, ID(change.Events[i].ID).Bytes()...)
	}
	return ids
}

// Scan implements sql.Scanner.
func (ids *IDs) Scan(src any) error {
	all, _ := src.([]byte)
	*ids = nil
	for each := range slices.Chunk(all, len(uuid.UUID{})) {
		var id ID
		if err := id.Scan(each); err != nil {
			return err
		}
		*ids = append(*ids, id)
	}
	return nil
}

// arg returns an identifier as argument of a statement that bun doesn't build, as [ID.AppendQuery] does.
func (d *Dialect) arg(id formsvc.ID) any {
	switch {
	case !id.Valid():
		return nil
	case d.BinaryIDs:
		return ID(id).Bytes()
	}
	return string(id)
}
