package formsvc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"
)

// An IdempotencyRecord is the answer to a call that may be repeated. It commits
// with what the call did.
type IdempotencyRecord struct {
	AccountID ID
	Key       string // chosen by the client: 1 to MaxIdempotencyKey characters of printable ASCII
	Reply
	CreatedAt time.Time
}

// A Reply is what a repeated call is answered with. It must not carry what is
// shown only once.
type Reply struct {
	Request    [sha256.Size]byte // of all that was asked for; another one under the same key is a mistake
	Status     int               // of HTTP
	ETag       string            // "" for none
	Location   string            // "" for none
	Body       []byte
	ResponseID ID // the response with whose erasure the body goes; "" for none
}

// A Once makes a call happen once, however often it is repeated; see
// [Service.Once].
type Once struct {
	AccountID ID
	Key       string
	// Reply returns what to remember of the call from its result: a pointer to
	// what the method returns beside its error; of [Webhooks.Create] that is a
	// *[Subscription]. It runs inside the unit, perhaps more than once and on another
	// goroutine, so it must not call the service.
	Reply func(result any) Reply
}

// Once returns the same Service for one call of one method that changes something.
// The call commits together with what o.Reply makes of its result. When there is
// a record under the key already the call fails with [ErrRepeated] and changes
// nothing, also when both run at once or on different nodes. A call that fails
// otherwise is not remembered; see [Service.Remember].
func (s *Service) Once(o *Once) *Service { return s.view(func(c *core) { c.once = o }) }

// record returns what a unit remembers of its result, or nil.
func (c *core) record(result any) *IdempotencyRecord {
	if c.once == nil {
		return nil
	}
	return &IdempotencyRecord{AccountID: c.once.AccountID, Key: c.once.Key, Reply: c.once.Reply(result), CreatedAt: c.now()}
}

// CheckIdempotencyKey returns a *[ValidationError] unless key can be one.
func CheckIdempotencyKey(key string) error {
	ok := key != "" && len(key) <= MaxIdempotencyKey
	for i := range len(key) {
		ok = ok && key[i] > ' ' && key[i] <= '~'
	}
	if ok {
		return nil
	}
	var v ValidationError
	v.add("/idempotencyKey", "invalid_value", "must have 1 to %d characters of printable ASCII without spaces", MaxIdempotencyKey)
	return &v
}

// Remember keeps the answer to a call that changed nothing, such as one that was
// refused. It fails with [ErrRepeated] when the key is taken.
func (s *Service) Remember(ctx context.Context, account ID, key string, a Reply) (err error) {
	defer s.core.span(&ctx, "Service.Remember").end(&err)
	record := IdempotencyRecord{AccountID: account, Key: key, Reply: a, CreatedAt: s.core.now()}
	if err := s.core.store.Note(ctx, Change{Idempotency: &record}); err != nil {
		return fmt.Errorf("formsvc: remember: %w", err)
	}
	return nil
}

// Recall returns the answer to an earlier call with that key, or [ErrNotFound]
// when there was none in the last [IdempotencyTTL].
func (s *Service) Recall(ctx context.Context, account ID, key string) (_ Reply, err error) {
	defer s.core.span(&ctx, "Service.Recall").end(&err)
	record, err := s.core.store.Recall(ctx, account, key, s.core.now().Add(-IdempotencyTTL))
	if err != nil {
		return Reply{}, fmt.Errorf("formsvc: recall: %w", err)
	}
	return record.Reply, nil
}

// Forget deletes what is remembered for longer than [IdempotencyTTL], and returns
// how many answers that were. [Service.Run] calls it.
func (s *Service) Forget(ctx context.Context) (deleted int, err error) {
	defer s.core.span(&ctx, "Service.Forget").end(&err)
	before := s.core.now().Add(-IdempotencyTTL)
	deleted, err = inUnits(ctx, func() (int, error) { return s.core.store.Prune(ctx, PruneIdempotency, before, pruneBatch) })
	if err != nil {
		return deleted, fmt.Errorf("formsvc: forget: %w", err)
	}
	return deleted, nil
}

// repeated returns [ErrRepeated] when the call has an answer already. It is for
// methods that do their work in more than one unit; others learn it from their unit.
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

// Begin notes that a call with that key is under way in this process, until end is
// called. It fails with [ErrInFlight] when one is. Calls on other nodes are not
// known here: of two that run at once, one commits and the other fails with
// [ErrRepeated].
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

type inFlight struct{ sync.Map }
