package formsvc

import (
	"errors"
	"fmt"
	"strings"
)

// The errors that a caller can act on. Services and stores wrap them; test for them with
// [errors.Is]. Every other error is an internal fault, whose text must not reach a client. If a
// call fails, nothing was changed and no event was raised, unless the error is [ErrUnknownOutcome].
var (
	// ErrNotFound means that the record does not exist in the caller's account.
	ErrNotFound = errors.New("formsvc: not found")
	// ErrConflict means that a unique value (a name, a reference) is taken.
	ErrConflict = errors.New("formsvc: already exists")
	// ErrStale means that the record changed since the caller read it.
	ErrStale = errors.New("formsvc: changed since it was read")
	// ErrInvalid means that the input breaks a rule; the error is usually a *[ValidationError] that
	// names every invalid field.
	ErrInvalid = errors.New("formsvc: invalid")
	// ErrCampaignClosed means that the campaign takes no new responses now.
	ErrCampaignClosed = errors.New("formsvc: campaign is closed")
	// ErrCampaignFull means that the campaign has as many responses as [Form].MaxResponses says.
	ErrCampaignFull = errors.New("formsvc: campaign is full")
	// ErrChoiceFull means that no place is left for a choice, which a *[ValidationError] in the error names.
	ErrChoiceFull = errors.New("formsvc: choice is full")
	// ErrAlreadyAnswered means that another response has the e-mail address ([Form].OncePerEmail).
	ErrAlreadyAnswered = errors.New("formsvc: e-mail address has answered already")
	// ErrCampaignNotEmpty means that the campaign has responses, so it can't be deleted. It is [ErrConflict].
	ErrCampaignNotEmpty = fmt.Errorf("formsvc: campaign has responses: %w", ErrConflict)
	// ErrLastAdmin means that the account would be left without an admin. It is [ErrConflict].
	ErrLastAdmin = fmt.Errorf("formsvc: last admin: %w", ErrConflict)
	// ErrTransition means that the workflow does not allow the change of status; the error is a *[TransitionError].
	ErrTransition = errors.New("formsvc: transition not allowed")
	// ErrUnauthenticated means that the API key, the sign-in link or the session is missing,
	// malformed, unknown, expired, used or revoked; the error doesn't say which.
	ErrUnauthenticated = errors.New("formsvc: unauthenticated")
	// ErrLimit means that the account has reached its limit for records of this kind. From the
	// service, the error is a *[LimitError].
	ErrLimit = errors.New("formsvc: limit reached")
	// ErrQuota means that the key, user or account has used up its requests in this window of time.
	ErrQuota = errors.New("formsvc: quota exceeded")
	// ErrRepeated means that an idempotency key has a record already. Only stores return it: the service then returns
	// the result of the earlier call ([Call]).
	ErrRepeated = errors.New("formsvc: idempotency key was used")
	// ErrInFlight means that a call with the same idempotency key is under way.
	ErrInFlight = errors.New("formsvc: another call with the idempotency key is under way")
	// ErrMismatch means that an idempotency key was used for a different call.
	ErrMismatch = errors.New("formsvc: idempotency key was used for another call")
	// ErrErased means that the result of an earlier call with the idempotency key was erased.
	ErrErased = errors.New("formsvc: result of the call was erased")
	// ErrResponseDeleted means that a delivery has answers of a response that was deleted, and can't be sent again.
	ErrResponseDeleted = errors.New("formsvc: response was deleted")
	// ErrTooLarge means that a file exceeds the size limit; the error is a *[FileSizeError].
	ErrTooLarge = errors.New("formsvc: too large")
	// ErrDigest means that the content of a file doesn't have the expected hash.
	ErrDigest = errors.New("formsvc: content does not have the expected hash")
	// ErrCorrupt means that the content of a file is missing, or not what was uploaded.
	ErrCorrupt = errors.New("formsvc: content is damaged")
	// ErrNoSpace means that the disk is full. Nothing was changed.
	ErrNoSpace = errors.New("formsvc: no space left")
	// ErrUnavailable means that the store can't be used now: for example, it can't be reached or is busy. Unless the
	// error is also ErrUnknownOutcome, nothing was changed, and a retry may succeed.
	ErrUnavailable = errors.New("formsvc: unavailable")
	// ErrMoved means that the data of the store is being moved to another database, or was moved;
	// it is also [ErrUnavailable]. Nothing was changed.
	ErrMoved = fmt.Errorf("formsvc: database is not in use: %w", ErrUnavailable)
	// ErrUnknownOutcome means that the connection to the store broke while a change was being
	// committed. The change may or may not have happened; check before you retry.
	ErrUnknownOutcome = errors.New("formsvc: outcome unknown")
	// ErrManyOrphans means that a sweep removed nothing because most blobs have no
	// file, as with the wrong database or one restored from an old backup.
	ErrManyOrphans = errors.New("formsvc: most blobs belong to no file")
	// ErrOtherBlobs means that the blob store belongs to another database, or has files and none of
	// them is known to this one. Nothing was written or removed there. Give each database its own
	// blob store, or copy the data, which keeps its identity.
	ErrOtherBlobs = errors.New("formsvc: blob store belongs to another database")
	// ErrStoreClosed means that the store was used after Close.
	ErrStoreClosed = errors.New("formsvc: store is closed")
)

// A FieldError says what is wrong with one field of an input.
type FieldError struct {
	Pointer string `json:"pointer"` // where, as a JSON Pointer (RFC 6901), for example "/user/email"
	Code    string `json:"code"`    // stable, snake_case, for example "required"
	Detail  string `json:"detail"`  // for people; never repeats the value
}

// A ValidationError lists the faults of an input in the order of the input, up to a thousand. It
// repeats the names of fields, but never a value. It is [ErrInvalid].
type ValidationError struct {
	Fields []FieldError

	host     *Options            // with the rules of the service; nil for none
	patterns map[string]*pattern // that were compiled
	steps    int                 // of comparing values with patterns
}

// Error names every invalid field.
func (e *ValidationError) Error() string {
	list := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		list[i] = f.Pointer + ": " + f.Detail
	}
	return "invalid input: " + strings.Join(list, "; ")
}

// Is reports whether target is [ErrInvalid].
func (e *ValidationError) Is(target error) bool { return target == ErrInvalid }

// maxFaults limits the faults that are reported for an input.
const maxFaults = 1_000

// add notes one more invalid field.
func (e *ValidationError) add(pointer, code, format string, args ...any) {
	if len(e.Fields) < maxFaults {
		e.Fields = append(e.Fields, FieldError{Pointer: pointer, Code: code, Detail: fmt.Sprintf(format, args...)})
	}
}

// misplaced notes a member that the type of its module, or another member, rules out, if that is so.
func (e *ValidationError) misplaced(is bool, pointer, detail string) {
	if is {
		e.add(pointer, "not_applicable", "%s", detail)
	}
}

// err returns e, or nil when nothing was noted.
func (e *ValidationError) err() error {
	if len(e.Fields) == 0 {
		return nil
	}
	return e
}

// A FileSizeError is a file with more bytes than [Options.MaxFile]. It is [ErrTooLarge].
type FileSizeError struct {
	Limit int64 // bytes
}

// Error names the limit.
func (e *FileSizeError) Error() string {
	return fmt.Sprintf("file is larger than %d bytes", e.Limit)
}

// Is reports whether target is [ErrTooLarge].
func (e *FileSizeError) Is(target error) bool { return target == ErrTooLarge }

// A WebhookExistsError means that the account has a webhook with the same URL, events and campaign,
// and [Webhooks.Create] got a secret or headers. It is [ErrConflict].
type WebhookExistsError struct {
	ID ID // of the other one
}

// Error names the other webhook.
func (e *WebhookExistsError) Error() string {
	return fmt.Sprintf("webhook %s has the same URL, events and campaign; its secret and headers are changed with Replace", e.ID)
}

// Is reports whether target is [ErrConflict].
func (e *WebhookExistsError) Is(target error) bool { return target == ErrConflict }

// A TransitionError is a change of status that the [Workflow] does not allow. It is [ErrTransition].
type TransitionError struct {
	From, To string
	Allowed  []string // the statuses that may follow From, sorted
}

// Error names both statuses and the allowed ones.
func (e *TransitionError) Error() string {
	return fmt.Sprintf("status %q cannot follow %q; allowed: %s", e.To, e.From, strings.Join(e.Allowed, ", "))
}

// Is reports whether target is [ErrTransition].
func (e *TransitionError) Is(target error) bool { return target == ErrTransition }

// A LimitError means that an account has reached its limit for records of a kind. It is [ErrLimit].
type LimitError struct {
	Kind  string // "campaigns", "keys", "webhooks", "responses", "bytes of files", or a store's own
	Limit int    // 0 if it isn't known
}

// Error names the kind and the limit.
func (e *LimitError) Error() string {
	if e.Limit == 0 {
		return "the account has reached its limit of " + e.Kind
	}
	return fmt.Sprintf("the account may have at most %d %s", e.Limit, e.Kind)
}

// Is reports whether target is [ErrLimit].
func (e *LimitError) Is(target error) bool { return target == ErrLimit }

// A Refusal is why a host refuses a response ([Options.CheckResponse]) if not for a field of it.
type Refusal struct { //nolint:errname // it is what a host says, not what failed
	Code   string // stable, snake_case, such as "plan_exhausted"
	Detail string // a sentence for clients and visitors
	Status int    // of the HTTP reply, 400 to 499. Defaults to 409
	// Lasting refuses retries with the same Idempotency-Key for [IdempotencyTTL] without asking the host again. Defaults to asking.
	Lasting bool
}

// Error returns the code and the sentence.
func (e *Refusal) Error() string { return e.Code + ": " + e.Detail }

// limited adds the kind and the limit to a store's [ErrLimit], unless the store says them.
func limited(err error, kind string, limit int) error {
	if _, said := errors.AsType[*LimitError](err); !said && errors.Is(err, ErrLimit) {
		return &LimitError{Kind: kind, Limit: limit}
	}
	return err
}

// invalid returns a *[ValidationError] for one field.
func invalid(pointer, code, detail string) error {
	return &ValidationError{Fields: []FieldError{{Pointer: pointer, Code: code, Detail: detail}}}
}

// A callError adds what a method was doing to its error. The package's prefix stands once in its text.
type callError struct {
	doing string
	error
}

// Error implements error.
func (e callError) Error() string {
	return "formsvc: " + e.doing + ": " + strings.ReplaceAll(e.error.Error(), "formsvc: ", "")
}

// Unwrap returns the cause.
func (e callError) Unwrap() error { return e.error }

// wrap makes a method's error a callError. Methods defer it.
func wrap(err *error, doing string) {
	if *err != nil {
		*err = callError{doing, *err}
	}
}

func ignoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
