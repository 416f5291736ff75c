// Package keyring encrypts what a store has to keep and nobody with a copy of the database may read: the secrets of
// webhooks. A stored value is one line of printable text:
//
//	s1.<key id>.<base64url of nonce, ciphertext and tag, without padding>
//
// It is encrypted with AES-256-GCM and a random 96-bit nonce. The additional data is a list of texts, each preceded by its
// length as 8 bytes, big-endian: "formsvc keyring s1", the key id, and the caller's context, which says where the value
// belongs. A value copied to another row doesn't open there. A key should seal at most 2³² values.
//
// A nil Keyring stores "p1." and the plain text, so a store can get keys later: every Keyring opens both forms.
//
// It protects against a reader of the database, a backup or a disk, not against somebody who can write to the database.
package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"
)

// Why a value can't be opened. Errors name the key, but never contain its bytes or any part of the value.
var (
	// ErrUnknownKey means that the key isn't in the ring.
	ErrUnknownKey = errors.New("keyring: unknown key")
	// ErrCorrupt means that the value was damaged, belongs to another place, or isn't a stored value. A retry doesn't help.
	ErrCorrupt = errors.New("keyring: corrupt value")
)

const (
	sealedPrefix = "s1."
	plainPrefix  = "p1."
	idLength     = 8
)

// encoding rejects unused bits that aren't zero, so that a value has only one encoding.
var encoding = base64.RawURLEncoding.Strict() //nolint:gochecknoglobals // immutable

// A key is 32 random bytes. Its id names it in the values that it seals: 8 hex digits computed from its bytes, not secret.
type key struct {
	id     string
	secret [32]byte
	aead   cipher.AEAD
}

func newKey(secret [32]byte) key {
	sum := sha256.Sum256(append([]byte("formsvc keyring key id"), secret[:]...))
	block, _ := aes.NewCipher(secret[:])           // never fails with 32 bytes
	aead, _ := cipher.NewGCMWithRandomNonce(block) // never fails with AES
	return key{hex.EncodeToString(sum[:])[:idLength], secret, aead}
}

func generate() key {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails since Go 1.24
	return newKey(secret)
}

func find(ring []key, id string) *key {
	if i := slices.IndexFunc(ring, func(k key) bool { return k.id == id }); i >= 0 {
		return &ring[i]
	}
	return nil
}

// A Keyring seals values under its first key and opens them under any. Create it with [Parse] or [OpenFile]. It is
// safe for concurrent use.
type Keyring struct {
	path string // "" if the keys aren't from a file
	keys atomic.Pointer[[]key]
}

// Parse reads keys from the text of a file or an environment variable. They are separated by commas, white space or line
// breaks; a "#" starts a comment that ends with the line. Each key is 32 bytes as 64 hex digits, or in base64 with the
// standard or the URL alphabet. The error names the number of a malformed or repeated key, and contains nothing of the text.
func Parse(text string) (*Keyring, error) {
	var ring []key
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
			b, err := hex.DecodeString(word)
			if len(word) != 64 {
				b, err = encoding.DecodeString(strings.NewReplacer("+", "-", "/", "_", "=", "").Replace(word))
			}
			if err != nil || len(b) != 32 {
				return nil, fmt.Errorf("keyring: key %d is neither 64 hexadecimal digits nor base64 of 32 bytes", len(ring)+1)
			}
			k := newKey([32]byte(b))
			if k.secret == ([32]byte{}) || find(ring, k.id) != nil {
				return nil, fmt.Errorf("keyring: key %d is all zeros, or another one has the id %s too", len(ring)+1, k.id)
			}
			ring = append(ring, k)
		}
	}
	if len(ring) == 0 {
		return nil, errors.New("keyring: there is no key")
	}
	k := new(Keyring)
	k.keys.Store(&ring)
	return k, nil
}

// list returns the keys, which never change.
func (k *Keyring) list() []key {
	if k == nil || k.keys.Load() == nil {
		return nil
	}
	return *k.keys.Load()
}

// Seal returns plain in its stored form, encrypted under the first key. The context says where the value belongs, such as
// table, column and row; [Keyring.Open] needs the same. A Keyring of [OpenFile] reads its file first, because another
// process may have put a new key there.
func (k *Keyring) Seal(plain string, context ...string) string {
	_ = k.load() // otherwise the old first key still seals
	ring := k.list()
	if len(ring) == 0 {
		return plainPrefix + plain
	}
	id := ring[0].id
	sealed := ring[0].aead.Seal(nil, nil, []byte(plain), additional(id, context)) //nolint:gosec // Seal creates the nonce
	return sealedPrefix + id + "." + encoding.EncodeToString(sealed)
}

// Open returns the plain text of a value that [Keyring.Seal] sealed with the same context. It fails with [ErrUnknownKey] or
// [ErrCorrupt]. If the key is unknown, a Keyring of [OpenFile] reads its file once more.
func (k *Keyring) Open(sealed string, context ...string) (string, error) {
	if plain, ok := strings.CutPrefix(sealed, plainPrefix); ok {
		return plain, nil
	}
	id, body, err := split(sealed)
	if err != nil {
		return "", err
	}
	key := find(k.list(), id)
	if key == nil {
		err = k.load()
		key = find(k.list(), id)
	}
	if key == nil {
		return "", errors.Join(fmt.Errorf("%w: %s", ErrUnknownKey, id), err)
	}
	ciphertext, err := encoding.DecodeString(body)
	if err != nil || len(body) != encoding.EncodedLen(len(ciphertext)) { // decoding skips line breaks
		return "", fmt.Errorf("%w: not base64url", ErrCorrupt)
	}
	plain, err := key.aead.Open(nil, nil, ciphertext, additional(id, context))
	if err != nil {
		return "", fmt.Errorf("%w: it does not open with the key %s", ErrCorrupt, id)
	}
	return string(plain), nil
}

// IDs returns the ids of the keys, that of the sealing key first.
func (k *Keyring) IDs() (ids []string) {
	for _, key := range k.list() {
		ids = append(ids, key.id)
	}
	return ids
}

// Primary returns the id of the key that seals, or "" if there is none.
func (k *Keyring) Primary() string {
	return append(k.IDs(), "")[0]
}

// KeyID returns the id of the key that sealed a stored value, or "" if the value is plain text. It fails with [ErrCorrupt] if
// it is neither. It doesn't check whether the value can be opened.
func KeyID(sealed string) (id string, err error) {
	if strings.HasPrefix(sealed, plainPrefix) {
		return "", nil
	}
	id, _, err = split(sealed)
	return id, err
}

// split splits a sealed value. Text without the form of an id is never returned, because it might be a secret.
func split(sealed string) (id, body string, err error) {
	rest, ok := strings.CutPrefix(sealed, sealedPrefix)
	id, body, named := strings.Cut(rest, ".")
	if _, err := hex.DecodeString(id); !ok || !named || err != nil || len(id) != idLength {
		return "", "", fmt.Errorf("%w: in an unknown form", ErrCorrupt)
	}
	return id, body, nil
}

// additional returns the additional data of a sealed value. The lengths keep lists apart whose joined texts are equal.
func additional(id string, context []string) (b []byte) {
	for _, text := range append([]string{"formsvc keyring s1", id}, context...) {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(text))), text...)
	}
	return b
}
