package bunstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// RecordHash returns the primary key of an idempotency record: 16 bytes of the hash of
// account and key. They are few because the index grows with every call and in random
// order.
func RecordHash(account formsvc.ID, key string) []byte {
	sum := sha256.Sum256([]byte(string(account) + "\x00" + key))
	return sum[:16]
}

func checkRecord(r *formsvc.IdempotencyRecord) error {
	err := errors.Join(checkIDs(r.AccountID), formsvc.CheckText(r.Key))
	if r.ResponseID != "" {
		err = errors.Join(err, checkIDs(r.ResponseID))
	}
	return err
}

// InsertRecord adds a record unless the key is taken. Its arguments are those of
// RecordArgs.
const InsertRecord = "INSERT INTO formsvc_idempotency (id, account_id, request, refused, result, response_id, created_at) " +
	"VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"

// RecordArgs returns the columns of a record, its identifiers by arg.
func RecordArgs(r *formsvc.IdempotencyRecord, arg func(formsvc.ID) any) []any {
	result := r.Result
	if result == nil {
		result = []byte{}
	}
	return []any{
		RecordHash(r.AccountID, r.Key), arg(r.AccountID), r.Request[:], r.Refused, result, arg(r.ResponseID), micros(r.CreatedAt),
	}
}

// remember adds a record in the transaction of c.
func (s *Store) remember(ctx context.Context, c bun.IConn, r *formsvc.IdempotencyRecord) error {
	result, err := c.ExecContext(ctx, s.rebind(InsertRecord), RecordArgs(r, s.dialect.arg)...)
	if err := changedOne(result, err); errors.Is(err, formsvc.ErrNotFound) {
		return formsvc.ErrRepeated
	} else if err != nil {
		return err
	}
	return nil
}

const (
	selectRecord = "SELECT request, refused, result, response_id, created_at FROM formsvc_idempotency WHERE id = ?"
	deleteRecord = "DELETE FROM formsvc_idempotency WHERE id = ? AND created_at < ?"
)

// Recall implements formsvc.IdempotencyStore.
func (s *Store) Recall(
	ctx context.Context, account formsvc.ID, key string, since time.Time,
) (formsvc.IdempotencyRecord, error) {
	var none formsvc.IdempotencyRecord
	if err := s.ready(ctx, account); err != nil {
		return none, err
	}
	hash := RecordHash(account, key)
	r := formsvc.IdempotencyRecord{AccountID: account, Key: key}
	var (
		request  []byte
		response ID
		created  int64
	)
	row := s.read.QueryRowContext(ctx, s.rebind(selectRecord), hash)
	if err := row.Scan(&request, &r.Refused, &r.Result, &response, &created); err != nil {
		return none, s.notFound(err)
	}
	copy(r.Request[:], request)
	r.ResponseID, r.CreatedAt = formsvc.ID(response), fromMicros(created)
	if !r.CreatedAt.Before(since) {
		return r, nil
	}
	if err := s.unit(ctx, func(ctx context.Context, c bun.IConn) error {
		_, err := c.ExecContext(ctx, s.rebind(deleteRecord), hash, micros(since))
		return err
	}); err != nil {
		return none, err
	}
	return none, formsvc.ErrNotFound
}
