package formsvc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// An Idempotency makes one call idempotent; see [Call].
type Idempotency struct {
	// Key is chosen by the client: 1 to [MaxIdempotencyKey] characters of printable ASCII without spaces. It belongs
	// to the account of the call.
	Key string
	// Request is a hash of what the client asks for. Another one under the same key fails with [ErrMismatch].
	// [Files.Upload] compares the file as well.
	Request [sha256.Size]byte
}

// A Call has the options of one call; see [Do].
type Call struct {
	// Idempotency makes the call of a method idempotent that creates something, tests a webhook, rotates a secret or a form,
	// or redelivers. If a call with the key succeeded in the last [IdempotencyTTL], the method changes nothing and returns
	// that call's result, without secrets, which are shown only once. This holds even if both calls run at once or on
	// different nodes: a result commits together with what the call did. Only calls of two methods with one key, at once on
	// two nodes, may both succeed. Such a method also fails with
	//   - [ErrInFlight] while another call with the key runs in this process,
	//   - [ErrMismatch] if the earlier call had another Request,
	//   - a *[RefusedError] if the earlier call was refused ([Service.Refuse]),
	//   - [ErrErased] if the result was erased with the data of a person, or was about a response that was deleted.
	//
	// Defaults to none.
	Idempotency *Idempotency
	// Faults are those that the input has before the rules are checked, such as a missing field that its encoding requires.
	// With any, a method that creates, changes or replaces a campaign, a response, a comment, a signature or a webhook
	// changes nothing. It fails with a *[ValidationError] that has these faults first, followed by those that the rules
	// find; or with another error, such as [ErrNotFound], if the rules can't be checked. Defaults to none.
	Faults []FieldError
}

// Do calls one method of s with options. The Service that method gets is for that one call. repeated is true if the result is
// that of an earlier call with the same key.
func Do[T any](s *Service, call Call, method func(*Service) (T, error)) (result T, repeated bool, err error) {
	if call.Idempotency == nil && len(call.Faults) == 0 {
		result, err = method(s)
		return result, false, err
	}
	var key *oneCall
	if call.Idempotency != nil {
		key = &oneCall{Idempotency: *call.Idempotency}
	}
	result, err = method(s.view(func(c *core) { c.once, c.refused = key, call.Faults }))
	return result, key != nil && key.repeated, err
}

// oneCall is the state of an idempotent call.
type oneCall struct {
	Idempotency

	repeated bool // whether it returned the result of an earlier one
}

// An IdempotencyRecord keeps the outcome of an idempotent call. It commits together with what the call did.
type IdempotencyRecord struct {
	AccountID ID
	Key       string
	Request   [sha256.Size]byte
	Refused   bool   // whether the call was refused, and changed nothing
	Result    []byte // what the call returned, as JSON; or the refusal; empty once it was erased
	// ResponseID is the response whose erasure or deletion empties the result; "" for none.
	ResponseID ID
	// Response is the result of a [ResponseStore.CreateResponse] that had no Result: the response as it was created.
	// A store sets it. It is nil once the response was erased or deleted.
	Response  *Response
	CreatedAt time.Time
}

// A RefusedError is the refusal of an earlier call with the same idempotency key.
type RefusedError struct {
	Refusal []byte // as [Service.Refuse] got it
}

// Error implements error.
func (e *RefusedError) Error() string { return "an earlier call with the key was refused" }

// CheckIdempotencyKey returns a *[ValidationError] if key isn't valid.
func CheckIdempotencyKey(key string) error {
	if key != "" && len(key) <= MaxIdempotencyKey && !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil
	}
	return invalid("/idempotencyKey", "invalid_value",
		fmt.Sprintf("must have 1 to %d characters of printable ASCII without spaces", MaxIdempotencyKey))
}

// Refuse keeps a refusal, which a later call with the key gets as *[RefusedError]. Call it for refusals that depend on
// nothing but the request. If the key has an outcome already, it fails as an idempotent method does, or with
// [ErrInFlight] if that outcome is a result: then a call that ran at the same time succeeded. refusal isn't empty.
func (s *Service) Refuse(ctx context.Context, account ID, o *Idempotency, refusal []byte) (err error) {
	defer wrap(&err, "refuse")
	_, repeated, err := Do(s, Call{Idempotency: o}, func(s *Service) (jsontext.Value, error) {
		return once(ctx, s.core, account, func() (jsontext.Value, error) {
			return nil, s.core.store.Commit(ctx, Change{Idempotency: &IdempotencyRecord{
				AccountID: account, Key: o.Key, Request: o.Request, Refused: true, Result: refusal, CreatedAt: s.core.now(),
			}})
		})
	})
	if repeated {
		return ErrInFlight
	}
	return err
}

// settlings is how often a call is tried if the outcome that it repeats has expired: twice is enough, unless clocks
// differ.
const settlings = 3

var errUnsettled = fmt.Errorf("a record of the key comes and goes: %w", ErrUnavailable)

// once runs a call once. If do fails, an earlier call with the key may have succeeded before it became impossible, so
// its result is what counts.
func once[T any](ctx context.Context, c *core, account ID, do func() (T, error)) (result T, err error) {
	if c.once == nil {
		return do()
	}
	end, err := c.begin(account)
	if err != nil {
		return result, err
	}
	defer end()
	for range settlings {
		if result, err = do(); !settles(ctx, err) {
			return result, err
		}
		record, failed := c.outcome(ctx, account, c.once)
		switch {
		case failed == nil:
			return resultOf[T](c.once, record)
		case !errors.Is(failed, ErrNotFound):
			return result, failed
		case !errors.Is(err, ErrRepeated):
			return result, err
		}
	}
	return result, errUnsettled
}

// begin notes that a call with the key runs in this process, until end is called.
func (c *core) begin(account ID) (end func(), err error) {
	if err := CheckIdempotencyKey(c.once.Key); err != nil {
		return nil, err
	}
	k := inFlightKey{account, c.once.Key}
	if _, taken := c.inFlight.LoadOrStore(k, nil); taken {
		return nil, ErrInFlight
	}
	return func() { c.inFlight.Delete(k) }, nil
}

type inFlightKey struct {
	account ID
	key     string
}

// settles reports whether a call that failed so could be settled by the outcome of an earlier one.
func settles(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrNoSpace)
}

// outcome returns the record of an earlier call that succeeded, or [ErrNotFound] if there was no call with the key.
func (c *core) outcome(ctx context.Context, account ID, o *oneCall) (*IdempotencyRecord, error) {
	record, err := c.store.Recall(ctx, account, o.Key, c.now().Add(-IdempotencyTTL))
	switch {
	case err != nil:
		return nil, err
	case record.Request != o.Request:
		return nil, ErrMismatch
	case record.Response != nil:
		record.Result = resultText(record.Response)
	case len(record.Result) == 0:
		return nil, ErrErased
	case record.Refused:
		return nil, &RefusedError{Refusal: record.Result}
	}
	return &record, nil
}

// repeated returns [ErrRepeated] if the key has a record. Methods with more than one atomic write call it first; in
// others the write itself fails.
func (c *core) repeated(ctx context.Context, account ID) error {
	if c.once == nil {
		return nil
	}
	_, err := c.store.Recall(ctx, account, c.once.Key, c.now().Add(-IdempotencyTTL))
	if err == nil {
		return ErrRepeated
	}
	return ignoreNotFound(err)
}

// record returns the record of a call's result, which must have no secrets, or nil. of is the response that the result
// is about, or "". A nil result is the response that the call creates, which the store keeps anyway.
func record[T any](c *core, account, of ID, result *T) *IdempotencyRecord {
	if c.once == nil {
		return nil
	}
	r := &IdempotencyRecord{AccountID: account, Key: c.once.Key, Request: c.once.Request, ResponseID: of, CreatedAt: c.now()}
	if result != nil {
		r.Result = resultText(result)
	}
	return r
}

func resultText[T any](result *T) []byte {
	text, err := json.Marshal(result, resultFormat)
	if err != nil {
		panic(err) // results are plain data
	}
	return text
}

// resultOf returns the result in a record.
func resultOf[T any](o *oneCall, record *IdempotencyRecord) (result T, err error) {
	if err := json.Unmarshal(record.Result, &result, resultFormat); err != nil {
		return result, err
	}
	o.repeated = true
	return result, nil
}

// resultFormat is how records keep results: by the names of Go's fields, since they live for a day.
//
//nolint:gochecknoglobals // immutable
var resultFormat = json.JoinOptions(
	json.FormatNilSliceAsNull(true), json.FormatNilMapAsNull(true), jsontext.AllowInvalidUTF8(true), jsonv1.FormatDurationAsNano(true),
	json.WithMarshalers(json.MarshalToFunc(func(to *jsontext.Encoder, a Answers) error {
		return to.WriteValue(jsontext.Value(a.JSON()))
	})),
	json.WithUnmarshalers(json.UnmarshalFromFunc(func(from *jsontext.Decoder, a *Answers) error {
		text, err := from.ReadValue()
		*a = StoredAnswers(string(text))
		return err
	})),
)
