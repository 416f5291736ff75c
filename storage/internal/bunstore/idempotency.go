package bunstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// recordHash returns the primary key of an idempotency record: 16 bytes of the hash of
// account and key. They are few because the index grows with every call and in random
// order.
func recordHash(account formsvc.ID, key string) []byte {
	sum := sha256.Sum256([]byte(string(account) + "\x00" + key))
	return sum[:16]
}

func checkRecord(r *formsvc.IdempotencyRecord) error {
	return errors.Join(checkIDs(r.AccountID, cmp.Or(r.ResponseID, r.AccountID)), formsvc.CheckText(r.Key)) // the response is optional
}

// RecordColumns are the columns of the idempotency record of a creation that has one.
func RecordColumns() []Column[*Creation] {
	record := func(n *Creation) *formsvc.IdempotencyRecord { return n.Change.Idempotency }
	return []Column[*Creation]{
		{"id", "bytea", func(n *Creation) any { return recordHash(record(n).AccountID, record(n).Key) }},
		{"account_id", "uuid", func(n *Creation) any { return record(n).AccountID }},
		{"request", "bytea", func(n *Creation) any { return record(n).Request[:] }},
		{"refused", "boolean", func(n *Creation) any { return record(n).Refused }},
		{"result", "bytea", (*Creation).result},
		{"response_id", "uuid", func(n *Creation) any { return record(n).ResponseID }},
		{"campaign_id", "uuid", func(n *Creation) any { return n.returned() }},
		{"created_at", "bigint", func(n *Creation) any { return micros(record(n).CreatedAt) }},
	}
}

// insertRecord adds a record unless the key is taken.
func insertRecord() string {
	return insert("formsvc_idempotency", RecordColumns()) + " ON CONFLICT DO NOTHING"
}

func (n *Creation) result() any {
	if n.returned() != "" {
		return nil
	}
	return NotNull(n.Change.Idempotency.Result)
}

// returned returns the campaign of n if its response is the result of its idempotent call,
// or "".
func (n *Creation) returned() formsvc.ID {
	if k := n.Change.Idempotency; k != nil && k.Result == nil && k.ResponseID == n.Response.ID {
		return n.Response.CampaignID
	}
	return ""
}

// remember adds a record in the transaction of c.
func (s *Store) remember(ctx context.Context, c bun.IConn, r *formsvc.IdempotencyRecord) error {
	n, err := Affected(c.ExecContext(ctx, insertRecord(),
		Args(RecordColumns(), &Creation{Change: formsvc.Change{Idempotency: r}}, s.dialect.arg)...))
	if err == nil && n == 0 {
		err = formsvc.ErrRepeated
	}
	return err
}

// keepResult keeps a response that is about to change for the first time, if it is the
// result of an idempotent call.
func (s *Store) keepResult(ctx context.Context, c bun.IConn, r *formsvc.Response) error {
	result, err := json.Marshal(storedResponse{r, r.Answers.JSON()})
	if err != nil {
		return err
	}
	_, err = s.build.NewUpdate().Conn(c).TableExpr("formsvc_idempotency").Set("result = ?", result).
		Where("response_id = ? AND campaign_id = ? AND result IS NULL", ID(r.ID), ID(r.CampaignID)).Exec(ctx)
	return err
}

// emptyResults empties the results of idempotent calls about responses.
func (s *Store) emptyResults(ctx context.Context, c bun.IConn, account ID, responses []ID) error {
	_, err := s.build.NewUpdate().Conn(c).TableExpr("formsvc_idempotency").Set("result = ?", []byte{}).
		Where("response_id IN (?) AND account_id = ?", bun.List(responses), account).Exec(ctx)
	return err
}

// A storedResponse is a response as the result of an idempotent call, with all its fields but unexported ones.
type storedResponse struct {
	*formsvc.Response

	Answers string
}

const (
	selectRecord = "SELECT request, refused, result, response_id, campaign_id, created_at, result IS NULL" +
		" FROM formsvc_idempotency WHERE id = $1"
	deleteRecord = "DELETE FROM formsvc_idempotency WHERE id = $1 AND created_at < $2"
)

// Recall implements formsvc.Store.
func (s *Store) Recall(
	ctx context.Context, account formsvc.ID, key string, since time.Time,
) (formsvc.IdempotencyRecord, error) {
	var none formsvc.IdempotencyRecord
	if err := s.ready(ctx, account); err != nil {
		return none, err
	}
	r, err := s.record(ctx, account, key)
	if err != nil {
		return none, s.notFound(err)
	}
	if !r.CreatedAt.Before(since) {
		return r, nil
	}
	if err := s.write(ctx, nil, nil, func(ctx context.Context, c *Tx) error {
		_, err := c.ExecContext(ctx, deleteRecord, recordHash(account, key), micros(since))
		return err
	}); err != nil {
		return none, err
	}
	return none, formsvc.ErrNotFound
}

// record reads a record with its Response.
func (s *Store) record(ctx context.Context, account formsvc.ID, key string) (r formsvc.IdempotencyRecord, err error) {
	r, campaign, current, err := s.recordAlone(ctx, account, key)
	if err != nil || campaign == "" {
		return r, err
	}
	of := formsvc.ResponseKey{AccountID: account, CampaignID: campaign, ID: r.ResponseID}
	var response formsvc.Response
	if current {
		response, err = s.response(ctx, s.read, of, s.responses.get)
		if err != nil && !errors.Is(err, formsvc.ErrNotFound) {
			return r, err
		}
		// If the response has changed or is gone, the record has a result now.
		if r, _, current, err = s.recordAlone(ctx, account, key); err != nil {
			return r, err
		}
	}
	switch {
	case current:
		r.Response = &response
	case len(r.Result) > 0:
		r.Response, err = storedResult(r.Result)
		r.Result = nil
	}
	return r, err
}

// storedResult returns the response that keepResult kept.
func storedResult(text []byte) (*formsvc.Response, error) {
	was := storedResponse{Response: new(formsvc.Response)}
	err := json.Unmarshal(text, &was)
	was.Response.Answers = formsvc.StoredAnswers(was.Answers)
	return was.Response, err
}

// recordAlone reads a record without its Response. campaign is that of the Response, and
// current says that it is the response as it is now.
func (s *Store) recordAlone(
	ctx context.Context, account formsvc.ID, key string,
) (r formsvc.IdempotencyRecord, campaign formsvc.ID, current bool, err error) {
	r.AccountID, r.Key = account, key
	var (
		request []byte
		created int64
	)
	row := s.read.QueryRowContext(ctx, selectRecord, recordHash(account, key))
	err = row.Scan(&request, &r.Refused, &r.Result, (*ID)(&r.ResponseID), (*ID)(&campaign), &created, &current)
	copy(r.Request[:], request)
	r.CreatedAt = fromMicros(created)
	return r, campaign, current, err
}
