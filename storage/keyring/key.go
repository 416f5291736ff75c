package keyring

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
)

// A Key is one key of a [Keyring]. It prints as its id in every format, in logs and in
// JSON.
//
// Don't keep a Key in an unexported field of another type: package fmt prints such fields
// without calling their methods. A Keyring can be kept anywhere.
type Key struct {
	// ID names the key in the values it seals: 1 to 64 letters, digits, hyphens or
	// underscores. It isn't secret. Defaults to 8 hex digits computed from Secret.
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

// keyID computes the id of a key: the first 8 hex digits of the SHA-256 of a fixed label
// and the key. Equal keys have equal ids, and a mistyped key shows as another id.
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

// String returns the key's id as "key(id)".
func (k Key) String() string { return "key(" + k.ID + ")" }

// GoString returns String.
func (k Key) GoString() string { return k.String() }

// Format writes String for every verb, because some verbs would print the bytes.
func (k Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// LogValue returns String.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText returns String, for JSON, too. A key can't be read back from it.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
