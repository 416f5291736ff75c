package keyring

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
)

// A Key is one key of a [Keyring]. It prints as its id in every format, in logs
// and in JSON.
//
// Package fmt asks nobody before it prints what is in an unexported field of
// another type, so do not keep a Key in one: a Keyring can be kept anywhere.
type Key struct {
	// ID names the key in what it seals: 1 to 64 letters, digits, hyphens or
	// underscores. It is no secret. Defaults to 8 hexadecimal digits that are
	// computed from Secret.
	ID string

	// Secret is the key itself: 32 random bytes.
	Secret [32]byte
}

const (
	maxID   = 64
	idLabel = "formsvc keyring key id"
)

// Generate returns a new random key.
func Generate() Key {
	var key Key
	_, _ = rand.Read(key.Secret[:]) // never fails since Go 1.24
	key.ID = keyID(&key.Secret)
	return key
}

// keyID computes the id of a key: the first 8 hexadecimal digits of the SHA-256
// of a fixed label and the key. Equal keys have equal ids, and a typing error in
// a key shows as another id.
func keyID(secret *[32]byte) string {
	sum := sha256.Sum256(append([]byte(idLabel), secret[:]...))
	return hex.EncodeToString(sum[:4])
}

func validID(id string) bool {
	for _, c := range []byte(id) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return id != "" && len(id) <= maxID
}

// String returns the key's id in words that say what it is.
func (k Key) String() string { return "key(" + k.ID + ")" }

// GoString is String.
func (k Key) GoString() string { return k.String() }

// Format writes String for every verb: without it some of them would show the
// bytes.
func (k Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// LogValue is String.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText is String, for JSON too. A key can't be read back from it.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
