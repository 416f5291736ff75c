package bunstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// recordHash returns the primary key of an idempotency record: 16 bytes of the hash of
// account and key. They are few because the index grows with every call. For forms it grows at its end: their keys begin
// with the time of the page, in eight hexadecimal digits.
func recordHash(account formsvc.ID, key string) []byte {
	sum := sha256.Sum256([]byte(string(account) + "\x00" + key))
	at, _, form := strings.Cut(key, "-form:")
	if at, err := strconv.ParseUint(at, 16, 32); form && err == nil {
		binary.BigEndian.PutUint32(sum[:], uint32(at))
	}
	return sum[:16]
}

func checkRecord(r *formsvc.IdempotencyRecord) error {
	return errors.Join(checkIDs(r.AccountID, cmp.Or(r.ResponseID, r.AccountID)), formsvc.CheckText(r.Key)) // the response is optional
}

// Call returns the primary key of the record of the idempotent call that creates a response, which is part of the response's row
// until that changes; or nil.
func (n *Creation) Call() any {
	if r := n.Change.Idempotency; r != nil {
		return recordHash(r.AccountID, r.Key)
	}
	return nil
}

func (n *Creation) request() any {
	if r := n.Change.Idempotency; r != nil {
		return r.Request[:]
	}
	return nil
}

const insertRecord = "INSERT INTO formsvc_idempotency (id, account_id, request, refused, result, response_id, created_at)" +
	" SELECT $1, $2, $3, $4, $5, $6, $7 WHERE NOT EXISTS (SELECT 1 FROM formsvc_responses AS r WHERE r.call = $1) ON CONFLICT DO NOTHING"

// remember adds a record in the transaction of c.
func (s *Store) remember(ctx context.Context, c bun.IConn, r *formsvc.IdempotencyRecord) error {
	n, err := Affected(c.ExecContext(ctx, insertRecord, recordHash(r.AccountID, r.Key), s.dialect.arg(r.AccountID), r.Request[:], r.Refused,
		NotNull(r.Result), s.dialect.arg(r.ResponseID), micros(r.CreatedAt)))
	if err == nil && n == 0 {
		err = formsvc.ErrRepeated
	}
	return err
}

// keepResult keeps what responses of a campaign, which are about to change or to be removed, are the result of: an idempotent call
// each. result is the response as JSON, or empty.
func (s *Store) keepResult(ctx context.Context, c bun.IConn, campaign ID, responses []ID, result []byte) error {
	_, err := s.build.NewRaw("INSERT INTO formsvc_idempotency (id, account_id, request, refused, result, response_id, campaign_id, created_at)"+
		" SELECT call, account_id, request, FALSE, ?, id, campaign_id, created_at FROM formsvc_responses"+
		" WHERE campaign_id = ? AND id IN (?) AND call IS NOT NULL ON CONFLICT DO NOTHING", result, campaign, bun.List(responses)).Conn(c).Exec(ctx)
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
	selectRecord = "SELECT request, refused, result, response_id, campaign_id, created_at, result IS NULL FROM formsvc_idempotency WHERE id = $1" +
		" UNION ALL SELECT request, FALSE, NULL, id, campaign_id, created_at, TRUE FROM formsvc_responses WHERE call = $1"
	deleteRecord = "DELETE FROM formsvc_idempotency WHERE id = $1 AND created_at < $2"
	forgetCall   = "UPDATE formsvc_responses SET call = NULL, request = NULL WHERE call = $1 AND created_at < $2"
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
		if err == nil {
			_, err = c.ExecContext(ctx, forgetCall, recordHash(account, key), micros(since))
		}
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

func keptResult(r *formsvc.Response) ([]byte, error) {
	return json.Marshal(storedResponse{r, r.Answers.JSON()})
}

// storedResult returns the response of keptResult.
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
