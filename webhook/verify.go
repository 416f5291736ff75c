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
	// MaxBody is the length of the longest accepted body in bytes. It must not be negative. There
	// is always a limit, because the body must be in memory before its signature can be verified.
	// Defaults to [DefaultMaxBody].
	MaxBody int64

	// Tolerance protects from replays. If it is positive, a request must also have the three
	// headers of Standard Webhooks, with a signature by one of the secrets: an attacker could leave
	// out optional ones. Its time of sending must not differ from Now by more than Tolerance, in
	// either direction; 5 minutes are usual. Within that a replay is still possible: see Deduper. It
	// must not be negative. Defaults to 0, which ignores the headers.
	Tolerance time.Duration

	// Now is the clock for Tolerance. It may be called by several goroutines at once. Defaults to
	// [time.Now].
	Now func() time.Time

	// Deduper makes [Verifier.Handler] reply to duplicates itself: it calls the next handler until
	// that succeeds once for the event. Events without an identifier are always passed on. See
	// [Deduper] for its promises. Defaults to passing every request on.
	Deduper Deduper

	// OnReject is called by [Verifier.Handler] with every refused request and the reason, before
	// the response is written. Use it for logs and metrics. It is also called with [ErrNotHandled],
	// see [Verifier.EventHandler], and with [ErrDeduper] if the next handler has replied and
	// Deduper can't record that. It may be called by several goroutines at once. Defaults to doing
	// nothing.
	OnReject func(r *http.Request, err error)
}

// check fills in the defaults and refuses values that are out of range.
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

// A Verifier checks that webhook requests come from the service. Create it with [NewVerifier]; the
// zero Verifier has no secrets and refuses every request with [ErrNoSecret]. It never changes and
// is safe for concurrent use.
type Verifier struct {
	secrets [][]byte
	opts    Options // with defaults
}

// NewVerifier returns a Verifier that accepts requests signed with any of secrets. One is usual;
// while you change a secret, give the new one first and then the old one.
//
// The bytes of a secret are used unchanged; for Standard Webhooks see [SetSignatures]. If you read a
// secret from a file, trim the newline at its end.
//
// It fails with [ErrNoSecret] if there is no secret or one is empty. A secret of zero bytes only
// counts as empty: HMAC pads short keys with zeros, so it is the same key. It also fails if an
// option is out of range.
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
	v := &Verifier{opts: o}
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
	// ID identifies the delivery: one event for one webhook. It is the same on every attempt. It
	// comes from a header that is NOT signed and may be anything or empty. Use it for logs, and to
	// find the delivery in the service's log. To detect duplicates, use EventID instead.
	ID string

	// Event is the type of the event, from the signed body. It is empty if the body isn't an event:
	// see [ParseEvent].
	Event EventType

	// EventID identifies the event, from the signed body. It is the same for every delivery and
	// attempt of one event: use it to detect duplicates. It is empty if the body has none.
	EventID string

	// Attempt is the number of this attempt, from 1 for the first. It comes from a header that is
	// NOT signed. It is 0 if the header is missing or not a positive number.
	Attempt int

	// Body is the raw body, exactly the bytes that were signed. It is shared
	// with the request's body and must not be changed.
	Body []byte

	// SecretIndex is the index of the secret given to [NewVerifier] that matched [SignatureHeader];
	// the lowest if several match.
	SecretIndex int

	// SentAt is when this attempt was sent, to the second. It is zero unless it was verified, which
	// requires [Options.Tolerance].
	SentAt time.Time
}

// Verify verifies the signature of a body that the caller has read, byte for byte as received, and
// returns the delivery. h has the request's headers under their canonical names, as in net/http.
//
// It fails with [ErrNoSecret], [ErrTooLarge], [ErrNoSignature],
// [ErrMalformedSignature] or [ErrMismatch], in this order, and then returns the
// zero Delivery. With [Options.Tolerance] the last three are followed by the
// same for the headers of Standard Webhooks, and by [ErrTooOld] or [ErrTooNew].
//
// It doesn't check the content: a signed body need not be an event. Verify keeps body in the
// Delivery and doesn't keep h.
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
	if v.opts.Tolerance > 0 {
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

// ready guards against a Verifier without secrets.
func (v *Verifier) ready() error {
	if v == nil || len(v.secrets) == 0 {
		return ErrNoSecret
	}
	return nil
}

// checkLength returns an ErrTooLarge that names the limit if n exceeds it.
func (v *Verifier) checkLength(n int64) error {
	if n > v.opts.MaxBody {
		return fmt.Errorf("%w: the limit is %d bytes", ErrTooLarge, v.opts.MaxBody)
	}
	return nil
}

// match returns the lowest index of a secret that yields want, or -1. It compares with every
// secret, so that its duration doesn't reveal which one matched.
func (v *Verifier) match(want, body []byte) int {
	index := -1
	for i := len(v.secrets) - 1; i >= 0; i-- {
		if hmac.Equal(sum(v.secrets[i], body), want) {
			index = i
		}
	}
	return index
}

// single returns the value of a header that must occur exactly once.
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
	// Check the length before decoding, which allocates memory.
	if len(value) != 64 {
		return nil, fmt.Errorf("%w: %s has %d characters, not 64", ErrMalformedSignature, SignatureHeader, len(value))
	}
	decoded, err := hex.DecodeString(value)
	// Decoding accepts upper case; the documentation requires lower case.
	if err != nil || hex.EncodeToString(decoded) != value {
		return nil, fmt.Errorf("%w: %s is not lowercase hexadecimal", ErrMalformedSignature, SignatureHeader)
	}
	return decoded, nil
}

// attempt returns the number in s, or 0 if it isn't positive.
func attempt(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0
	}
	return n
}
