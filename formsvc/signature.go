package formsvc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/webhook"
)

// A Signature records who signed what and when: a file of a response, or the response's answers at
// that time. Answers may change later; to detect that, compare the hash with that of
// [Answers.Canonical], a form that any language can produce (RFC 8785). The signer's identity isn't
// verified: that is up to the party that took the signature. A Signature never changes.
type Signature struct {
	ID         ID
	AccountID  ID
	CampaignID ID
	ResponseID ID
	Signer     User
	FileID     ID     // the file that was signed; "" if the answers were signed
	Provider   string // the party that took the signature, at most 200 characters; may be ""
	// DocumentSHA256 is the hash of the signed document: the file's content, or [Answers.Canonical].
	DocumentSHA256 [sha256.Size]byte
	SignedAt       time.Time
	CreatedAt      time.Time
}

// SignatureInput is what a new signature needs.
type SignatureInput struct {
	Signer   User      // with the same rules as in [ResponseInput]
	FileID   ID        // a file of the response; "" if its answers were signed
	Provider string    // at most 200 characters
	SignedAt time.Time // truncated to milliseconds, at most 5 minutes ahead of our clock; zero means now
}

const (
	// maxProvider is the largest length of a provider's name, in characters.
	maxProvider = 200
	// signedAhead is how far ahead of our clock SignedAt may be. Clocks differ by seconds, seldom by minutes. A later
	// time is a mistake, such as a missing time zone, and the record can't be corrected.
	signedAhead = 5 * time.Minute
)

// Signatures creates and lists signatures. It is safe for concurrent use.
type Signatures struct{ s *core }

// Create records a signature of a response, whatever the status of the response or its campaign,
// and raises the event "signature.completed" in the same atomic write, unless the response is held. The response isn't changed.
// DocumentSHA256 is the hash of the file, or of the answers at the time of that write.
//
// It fails with a *[ValidationError], with the code unknown_file if the file doesn't belong to this
// response, and with [ErrNotFound] for an unknown response.
func (s Signatures) Create(ctx context.Context, key ResponseKey, in SignatureInput) (_ Signature, err error) {
	defer wrap(&err, "create signature")
	return once(ctx, s.s, key.AccountID, func() (Signature, error) { return s.create(ctx, key, in) })
}

func (s Signatures) create(ctx context.Context, key ResponseKey, in SignatureInput) (sig Signature, err error) {
	now := s.s.now()
	sum, err := s.s.checkSignature(ctx, key, &in, now)
	if err != nil {
		return Signature{}, err
	}
	c, err := s.s.store.Campaign(ctx, CampaignKey{AccountID: key.AccountID, ID: key.CampaignID})
	if err != nil {
		return Signature{}, err
	}
	sig = Signature{
		ID: s.s.NewID(now), AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID,
		Signer: in.Signer, FileID: in.FileID, Provider: in.Provider, DocumentSHA256: sum,
		SignedAt: milliseconds(in.SignedAt), CreatedAt: now,
	}
	if sig.SignedAt.IsZero() {
		sig.SignedAt = now
	}
	sig, err = s.s.store.CreateSignature(ctx, sig, func(r *Response, sig *Signature) (Change, error) {
		if sig.FileID == "" {
			text, err := r.Answers.Canonical()
			if err != nil {
				return Change{}, err
			}
			sig.DocumentSHA256 = sha256.Sum256(text)
		}
		extra := eventExtra{member: "signature", json: sig.AppendJSON(nil)}
		change := Change{Idempotency: record(s.s, key.AccountID, key.ID, sig)}
		change.unlessHeld(r, s.s.newEvent(ctx, webhook.SignatureCompleted, &c, r, s.s.now(), extra))
		return change, nil
	})
	if err == nil {
		s.s.raised(key.AccountID)
	}
	return sig, err
}

// checkSignature returns a *[ValidationError] with the faults of a signature, or else the hash of
// its file, which can't change.
func (c *core) checkSignature(
	ctx context.Context, key ResponseKey, in *SignatureInput, now time.Time,
) (sum [sha256.Size]byte, err error) {
	v := c.faults()
	if in.Signer.Email == "" {
		v.require("/signer/email")
	}
	v.checkUser("/signer", &in.Signer)
	if in.FileID != "" {
		f, err := c.store.File(ctx, FileKey{AccountID: key.AccountID, ID: in.FileID})
		switch {
		case err != nil && !errors.Is(err, ErrNotFound):
			return sum, err
		case err == nil && f.CampaignID == key.CampaignID && f.ResponseID == key.ID:
			sum = f.SHA256
		default:
			// If there is no such response, that is the error, not the file.
			if _, err := c.store.Response(ctx, key); err != nil {
				return sum, err
			}
			v.add("/fileUuid", "unknown_file", "is not a file of this response")
		}
	}
	v.checkLine("/provider", in.Provider, maxProvider)
	if in.SignedAt.After(now.Add(signedAhead)) {
		v.add("/signedAt", "in_the_future", "must not be in the future")
	} else {
		v.checkTime("/signedAt", in.SignedAt)
	}
	return sum, v.err()
}

// List returns a page of the signatures of a response, or [ErrNotFound].
func (s Signatures) List(ctx context.Context, key ResponseKey, q PageQuery) (Page[Signature], error) {
	return listed("signatures", &q, func() (Page[Signature], error) { return s.s.store.Signatures(ctx, key, q) })
}

// AppendJSON appends the signature as the JSON object that clients get and webhooks carry.
func (sig *Signature) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"uuid":`, string(sig.ID))
	b = appendUser(b, `,"signer":`, &sig.Signer)
	b = appendOptional(b, `,"fileUuid":`, string(sig.FileID))
	b = appendOptional(b, `,"provider":`, sig.Provider)
	b = fmt.Appendf(b, `,"documentSha256":"%x"`, sig.DocumentSHA256)
	b = appendTime(b, `,"signedAt":`, sig.SignedAt)
	return append(appendTime(b, `,"createdAt":`, sig.CreatedAt), '}')
}

// Canonical returns the answers in the canonical form of RFC 8785 (JCS), to be hashed or signed. In
// JavaScript, from the field "responses" of the API:
//
//	"{" + Object.keys(responses).sort().map(name =>
//	    JSON.stringify(name) + ":" + JSON.stringify({value: responses[name].value})).join(",") + "}"
//
// That is: each module has the one member "value"; names are sorted by UTF-16 code units; there is no
// white space; strings are escaped where JSON requires it, in the shortest form. The hash is that of
// the text in UTF-8. It fails if [StoredAnswers] was given an invalid text.
func (a Answers) Canonical() ([]byte, error) {
	b := jsontext.Value(a.JSON())
	err := b.Canonicalize()
	return b, err
}
