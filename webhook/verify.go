package webhook

import (
	"crypto/hmac"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// DefaultMaxBody is the length of the longest body that a [Verifier] accepts by
// default, in bytes: 1 MiB and 64 KiB. The service's documentation limits a
// payload to 1 MB, under Limits; this leaves room for either reading of "MB".
const DefaultMaxBody = 1<<20 + 64<<10

// Options are the optional settings of a [Verifier]. nil means all defaults.
type Options struct {
	// MaxBody is the length of the longest accepted body in bytes. It must not
	// be negative: there is no way to have no limit, because a body has to be
	// in memory before its signature can be checked.
	// Defaults to [DefaultMaxBody].
	MaxBody int64

	// Tolerance protects from replays. If it is positive, a request must also
	// have the three headers of Standard Webhooks, with a signature under one of
	// the secrets, and its time of sending must not be further from Now than
	// this, in either direction; 5 minutes are usual. The service sends these
	// headers with every attempt, with the time of that attempt. If it is 0, the
	// headers are not looked at. It must not be negative.
	//
	// There is no way to check them only when they are there: who replays a
	// request could leave them out. [SignatureHeader] is required in any case.
	// Within the tolerance a replay is still possible: see Deduper.
	// Defaults to 0.
	Tolerance time.Duration

	// Now tells the time for Tolerance. It may be called by several goroutines
	// at once.
	// Defaults to [time.Now].
	Now func() time.Time

	// Deduper makes [Verifier.Handler] answer repetitions by itself: it then
	// calls the next handler once for every event that this succeeds for.
	// Events without an identifier are not held back. See [Deduper] for what
	// that promises.
	// Defaults to passing every request on.
	Deduper Deduper

	// OnReject is called by [Verifier.Handler] with every request that it
	// refuses and the reason, before the answer is written: a place for a log
	// line or a counter. It is also called with [ErrNotHandled], see
	// [Verifier.EventHandler], and with [ErrDeduper] when the next handler has
	// answered and Deduper cannot note that. It may be called by several
	// goroutines at once.
	// Defaults to doing nothing.
	OnReject func(r *http.Request, err error)
}

// check fills in the defaults and refuses what is out of range.
func (o *Options) check() error {
	if o.MaxBody < 0 {
		return errors.New("webhook: MaxBody is negative")
	}
	if o.Tolerance < 0 {
		return errors.New("webhook: Tolerance is negative")
	}
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OnReject == nil {
		o.OnReject = func(*http.Request, error) {}
	}
	return nil
}

// A Verifier checks that webhook requests come from the service. Make it with
// [NewVerifier]; one without secrets, the zero Verifier included, refuses every
// request with [ErrNoSecret]. It never changes and is safe for concurrent use.
type Verifier struct {
	secrets   [][]byte
	maxBody   int64
	tolerance time.Duration
	now       func() time.Time
	deduper   Deduper
	onReject  func(*http.Request, error)
}

// NewVerifier returns a Verifier that accepts what was signed with any of
// secrets. One is usual; while a secret is being changed, give the new one
// first and then the old one.
//
// The bytes of a secret are used as they are, but for Standard Webhooks, see
// [SignStandard]. One that was read from a file
// often ends in a newline that is not part of it: trim it before.
//
// It fails with [ErrNoSecret] when there is no secret or one is empty. A secret
// of nothing but zero bytes counts as empty: HMAC fills a short key up with
// them, so it is the same key. It also fails when an option is out of range.
func NewVerifier(secrets []string, opts *Options) (*Verifier, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if len(secrets) == 0 {
		return nil, ErrNoSecret
	}
	v := &Verifier{maxBody: o.MaxBody, tolerance: o.Tolerance, now: o.Now, deduper: o.Deduper, onReject: o.OnReject}
	for i, secret := range secrets {
		key := []byte(secret)
		if isEmptyKey(key) {
			return nil, fmt.Errorf("%w: the one at index %d is empty", ErrNoSecret, i)
		}
		v.secrets = append(v.secrets, key)
	}
	return v, nil
}

// A Delivery is a webhook request whose signature was verified.
type Delivery struct {
	// ID identifies the delivery, which is one event on its way to one
	// webhook. It stays the same on every attempt. It comes from a header that
	// is NOT signed, may be anything or empty, and is meant for logs and for
	// finding the delivery in the service's own log. Never tell repetitions by
	// it: use EventID.
	ID string

	// Event is the type of the event, from the signed body. It is empty when
	// the body is not an event: see [ParseEvent].
	Event EventType

	// EventID identifies the event, from the signed body. It is the same for
	// every delivery and attempt of one event, which makes it the key for
	// telling repetitions. It is empty when the body has none.
	EventID string

	// Attempt is the number of this attempt, from 1 for the first. It comes
	// from a header that is NOT signed. It is 0 when the header is missing or
	// not a positive number.
	Attempt int

	// Body is the raw body, exactly the bytes that were signed. It is shared
	// with the request's body and must not be changed.
	Body []byte

	// SecretIndex tells which of the secrets given to [NewVerifier] matched
	// [SignatureHeader], from 0; the lowest if several do.
	SecretIndex int

	// SentAt is when this attempt was sent, to the second. It is the zero time
	// unless it was verified, for which [Options.Tolerance] has to be set.
	SentAt time.Time
}

// Verify checks the signature of a body that the caller has read, byte for byte
// as it came, and returns what was delivered. h are the request's headers under
// their canonical names, as net/http gives them and [net/http.Header.Set] makes
// them.
//
// It fails with [ErrNoSecret], [ErrTooLarge], [ErrNoSignature],
// [ErrMalformedSignature] or [ErrMismatch], in this order, and then returns the
// zero Delivery. With [Options.Tolerance] the last three are followed by the
// same for the headers of Standard Webhooks, and by [ErrTooOld] or [ErrTooNew].
//
// It says nothing about the content: a signed body need not be
// an event. Verify keeps body in the Delivery and does not keep h.
func (v *Verifier) Verify(body []byte, h http.Header) (Delivery, error) {
	if err := v.ready(); err != nil {
		return Delivery{}, err
	}
	if err := v.checkLength(int64(len(body))); err != nil {
		return Delivery{}, err
	}
	want, err := signature(h)
	if err != nil {
		return Delivery{}, err
	}
	index := v.match(want, body)
	if index < 0 {
		return Delivery{}, ErrMismatch
	}
	var sentAt time.Time
	if v.tolerance > 0 {
		if sentAt, err = v.verifyStandard(body, h); err != nil {
			return Delivery{}, err
		}
	}
	d := Delivery{
		ID:          h.Get(DeliveryHeader),
		Attempt:     attempt(h.Get(AttemptHeader)),
		Body:        body,
		SecretIndex: index,
		SentAt:      sentAt,
	}
	d.Event, d.EventID = identify(body)
	return d, nil
}

// ready guards against a Verifier that checks nothing.
func (v *Verifier) ready() error {
	if v == nil || len(v.secrets) == 0 {
		return ErrNoSecret
	}
	return nil
}

// checkLength returns an ErrTooLarge that names the limit if n exceeds it.
func (v *Verifier) checkLength(n int64) error {
	if n > v.maxBody {
		return fmt.Errorf("%w: the limit is %d bytes", ErrTooLarge, v.maxBody)
	}
	return nil
}

// match returns the lowest index of a secret that yields want, or -1. It
// computes and compares with every secret, so that the time it takes does not
// tell which one matched.
func (v *Verifier) match(want, body []byte) int {
	index := -1
	for i := len(v.secrets) - 1; i >= 0; i-- {
		if hmac.Equal(sum(v.secrets[i], body), want) {
			index = i
		}
	}
	return index
}

// single returns the value of a header that must come exactly once.
func single(h http.Header, name string) (string, error) {
	values := h.Values(name)
	if len(values) == 0 {
		return "", fmt.Errorf("%w: %s", ErrNoSignature, name)
	}
	if len(values) > 1 {
		return "", fmt.Errorf("%w: %s comes %d times", ErrMalformedSignature, name, len(values))
	}
	return values[0], nil
}

// signature returns the 32 bytes of the one signature header.
func signature(h http.Header) ([]byte, error) {
	value, err := single(h, SignatureHeader)
	if err != nil {
		return nil, err
	}
	// Checked before decoding, which would take memory for any length.
	if len(value) != 64 {
		return nil, fmt.Errorf("%w: %s has %d characters, not 64", ErrMalformedSignature, SignatureHeader, len(value))
	}
	decoded, err := hex.DecodeString(value)
	// Decoding accepts upper case, the documentation says lower case.
	if err != nil || hex.EncodeToString(decoded) != value {
		return nil, fmt.Errorf("%w: %s is not lowercase hexadecimal", ErrMalformedSignature, SignatureHeader)
	}
	return decoded, nil
}

// attempt returns the number in s, or 0 if it is not a positive one.
func attempt(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0
	}
	return n
}
