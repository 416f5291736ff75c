package webhook

import (
	"bytes"
	"crypto/hmac"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of Standard Webhooks (https://www.standardwebhooks.com), which the service sends in
// addition to its own. Together they are a second signature, which also covers the time of sending.
const (
	// StandardIDHeader carries the identifier of the event, the same for every
	// delivery and attempt. It must not have a dot in it.
	StandardIDHeader = "webhook-id"
	// StandardTimestampHeader carries the time of the attempt in seconds since
	// 1970, in decimal digits.
	StandardTimestampHeader = "webhook-timestamp"
	// StandardSignatureHeader carries one or more signatures, separated by spaces: one for each
	// valid secret (see [SetSignatures]).
	StandardSignatureHeader = "webhook-signature"
)

const (
	standardVersion = "v1,"
	standardPrefix  = "whsec_"
	// standardLength is the length of a signature: version and base64 of 32 bytes.
	standardLength = len(standardVersion) + 44
	// lastSecond is the end of the year 9999, the last one in RFC 3339.
	lastSecond = 253402300799
)

// SetSignatures signs a request as the service does: it sets [SignatureHeader] and the three headers of
// Standard Webhooks on h, replacing existing ones. id is the event's identifier, and at is when the
// request is sent. There is one secret. While receivers switch secrets, give the new one and then the
// old one: SignatureHeader, which has room for one signature, is by the last one, and
// [StandardSignatureHeader] has a signature by each.
//
// A signature of Standard Webhooks is "v1," and an HMAC-SHA-256 in base64. The signed text is id, a
// dot, the seconds of at since 1970, a dot and body. If the secret starts with "whsec_" and the rest is
// base64 ([base64.StdEncoding]) of a key that isn't empty or all zero, that is the key, as in the
// libraries of Standard Webhooks. Otherwise the secret's own bytes are; receivers must then pass them
// to their library as a raw key. The key of SignatureHeader is never decoded. A [Verifier] refuses an
// id that is empty or has a dot, and a time before 1970.
func SetSignatures(h http.Header, id string, at time.Time, body []byte, secrets ...string) {
	var own string
	var signatures []string
	for _, secret := range secrets { // the last one is the older
		own = Sign(secret, body)
		signatures = append(signatures, signStandard([]byte(secret), id, at, body))
	}
	h.Set(SignatureHeader, own)
	h.Set(StandardIDHeader, id)
	h.Set(StandardTimestampHeader, strconv.FormatInt(at.Unix(), 10))
	h.Set(StandardSignatureHeader, strings.Join(signatures, " "))
}

// signStandard returns a signature of Standard Webhooks.
func signStandard(secret []byte, id string, at time.Time, body []byte) string {
	mac := sum(standardKey(secret), fmt.Appendf(nil, "%s.%d.", id, at.Unix()), body)
	return standardVersion + base64.StdEncoding.EncodeToString(mac)
}

// standardKey returns the key of a secret by the rule of SetSignatures.
func standardKey(secret []byte) []byte {
	text, ok := bytes.CutPrefix(secret, []byte(standardPrefix))
	if !ok {
		return secret
	}
	key, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil || isEmptyKey(key) {
		// With an empty key anyone could sign.
		return secret
	}
	return key
}

// isEmptyKey reports whether key is equivalent to an empty HMAC key: HMAC pads short keys with zero
// bytes.
func isEmptyKey(key []byte) bool {
	return len(bytes.Trim(key, "\x00")) == 0
}

// A standard holds the parsed headers of Standard Webhooks.
type standard struct {
	id         string
	sentAt     time.Time
	signatures string
}

// parseStandard parses the three headers and refuses malformed ones.
//
// The signed text must have only one meaning. Hence the identifier has no dot, and the time has the
// form that SetSignatures writes.
func parseStandard(h http.Header) (standard, error) {
	var values [3]string
	for i, name := range [...]string{StandardIDHeader, StandardTimestampHeader, StandardSignatureHeader} {
		value, err := single(h, name)
		if err != nil {
			return standard{}, err
		}
		values[i] = value
	}
	if values[0] == "" || strings.Contains(values[0], ".") {
		return standard{}, fmt.Errorf("%w: %s is empty or has a dot", ErrMalformedSignature, StandardIDHeader)
	}
	seconds, err := strconv.ParseInt(values[1], 10, 64)
	if err != nil || seconds < 0 || seconds > lastSecond || strconv.FormatInt(seconds, 10) != values[1] {
		return standard{}, fmt.Errorf("%w: %s is not a number of seconds", ErrMalformedSignature, StandardTimestampHeader)
	}
	for token := range strings.SplitSeq(values[2], " ") {
		if isStandard(token) {
			return standard{id: values[0], sentAt: time.Unix(seconds, 0), signatures: values[2]}, nil
		}
	}
	return standard{}, fmt.Errorf("%w: %s has no signature of version 1", ErrMalformedSignature, StandardSignatureHeader)
}

// isStandard reports whether token can be a signature of version 1.
func isStandard(token string) bool {
	// Check the length before decoding, which allocates memory.
	if len(token) != standardLength || !strings.HasPrefix(token, standardVersion) {
		return false
	}
	mac, err := base64.StdEncoding.DecodeString(token[len(standardVersion):])
	return err == nil && len(mac) == 32
}

// verifyStandard checks the headers of Standard Webhooks and returns when the request was sent. The
// time is checked last: only an authentic time says something about the sender's clock.
func (v *Verifier) verifyStandard(body []byte, h http.Header) (time.Time, error) {
	s, err := parseStandard(h)
	if err != nil {
		return time.Time{}, err
	}
	if !v.matchStandard(s, body) {
		return time.Time{}, fmt.Errorf("%w: %s", ErrMismatch, StandardSignatureHeader)
	}
	age := v.opts.Now().Sub(s.sentAt)
	if age > v.opts.Tolerance {
		return time.Time{}, fmt.Errorf("%w: %s ago, the tolerance is %s", ErrTooOld, age.Round(time.Second), v.opts.Tolerance)
	}
	if age < -v.opts.Tolerance {
		return time.Time{}, fmt.Errorf("%w: %s ahead, the tolerance is %s", ErrTooNew, age.Abs().Round(time.Second), v.opts.Tolerance)
	}
	return s.sentAt, nil
}

// matchStandard reports whether one of the signatures belongs to one of the secrets. It compares
// all pairs, as [Verifier.match] does.
func (v *Verifier) matchStandard(s standard, body []byte) bool {
	matches := false
	for _, secret := range v.secrets {
		want := signStandard(secret, s.id, s.sentAt, body)
		for token := range strings.SplitSeq(s.signatures, " ") {
			if hmac.Equal([]byte(token), []byte(want)) {
				matches = true
			}
		}
	}
	return matches
}
