package formsvc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"
)

// An IdempotencyRecord is the stored reply to an idempotent call. It commits together with what the
// call did.
type IdempotencyRecord struct {
	AccountID ID
	Key       string // chosen by the client: 1 to MaxIdempotencyKey characters of printable ASCII
	Reply
	CreatedAt time.Time
}

// A Reply is what a repeated call returns to the client. It must not contain secrets that are shown
// only once.
type Reply struct {
	Request    [sha256.Size]byte // hash of the request; another request under the same key fails with [ErrMismatch]
	Status     int               // HTTP status
	ETag       string            // "" for none
	Location   string            // "" for none
	Body       []byte
	ResponseID ID // the body is erased with this response; "" for none
}

// A Once makes one call idempotent; see [Service.Once].
type Once struct {
	AccountID ID
	Key       string
	// Reply returns the reply to store for the call's result. result is a pointer to what the
	// method returns apart from its error; for [Webhooks.Create] it is a *[Subscription]. Reply
	// runs inside the atomic write, perhaps more than once and on another goroutine, so it must not
	// call the service.
	Reply func(result any) Reply
}

// Once returns the same Service for one idempotent call of one method that changes something. The
// call commits together with the reply that o.Reply returns for its result. If the key has a record
// already, the call fails with [ErrRepeated] and changes nothing, even if both calls run at once or
// on different nodes. A call that fails otherwise is not stored; see [Service.Remember].
func (s *Service) Once(o *Once) *Service { return s.view(func(c *core) { c.once = o }) }

// record returns the idempotency record for a result, or nil.
func (c *core) record(result any) *IdempotencyRecord {
	if c.once == nil {
		return nil
	}
	return &IdempotencyRecord{AccountID: c.once.AccountID, Key: c.once.Key, Reply: c.once.Reply(result), CreatedAt: c.now()}
}

// CheckIdempotencyKey returns a *[ValidationError] if key isn't valid.
func CheckIdempotencyKey(key string) error {
	if key != "" && len(key) <= MaxIdempotencyKey && !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil
	}
	return invalid("/idempotencyKey", "invalid_value",
		fmt.Sprintf("must have 1 to %d characters of printable ASCII without spaces", MaxIdempotencyKey))
}

// Remember stores the reply to a call that changed nothing, such as one that was refused. It fails
// with [ErrRepeated] if the key is taken.
func (s *Service) Remember(ctx context.Context, account ID, key string, a Reply) (err error) {
	defer wrap(&err, "remember")
	record := IdempotencyRecord{AccountID: account, Key: key, Reply: a, CreatedAt: s.core.now()}
	return s.core.store.Note(ctx, Change{Idempotency: &record})
}

// Recall returns the reply to an earlier call with that key, or [ErrNotFound] if there was none in
// the last [IdempotencyTTL].
func (s *Service) Recall(ctx context.Context, account ID, key string) (_ Reply, err error) {
	defer wrap(&err, "recall")
	record, err := s.core.store.Recall(ctx, account, key, s.core.now().Add(-IdempotencyTTL))
	if err != nil {
		return Reply{}, err
	}
	return record.Reply, nil
}

// repeated returns [ErrRepeated] if the call has a reply already. Methods with more than one atomic
// write call it; in others the write itself fails.
func (c *core) repeated(ctx context.Context) error {
	if c.once == nil {
		return nil
	}
	_, err := c.store.Recall(ctx, c.once.AccountID, c.once.Key, c.now().Add(-IdempotencyTTL))
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return ErrRepeated
}

// Begin notes that a call with that key is under way in this process, until end is called. It fails
// with [ErrInFlight] if one is under way already. It doesn't know calls on other nodes: if two run
// at once, one commits and the other fails with [ErrRepeated].
func (s *Service) Begin(account ID, key string) (end func(), err error) {
	k := inFlightKey{account, key}
	if _, taken := s.core.inFlight.LoadOrStore(k, nil); taken {
		return nil, ErrInFlight
	}
	return func() { s.core.inFlight.Delete(k) }, nil
}

type inFlightKey struct {
	account ID
	key     string
}
