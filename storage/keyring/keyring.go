package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// Why a value can't be opened. Errors name the key, but never contain its bytes or any
// part of the value.
var (
	// ErrUnknownKey means that the key isn't in the ring. The error's text names the key.
	// It may be found a second later: see [OpenFile].
	ErrUnknownKey = errors.New("keyring: unknown key")

	// ErrCorrupt means that the value was damaged, belongs to another place, was sealed
	// under another key with the same id, or isn't a stored value at all. A retry doesn't
	// help.
	ErrCorrupt = errors.New("keyring: corrupt value")
)

const (
	sealedPrefix = "s1."
	plainPrefix  = "p1."
	sealedLabel  = "formsvc keyring s1"
)

// encoding rejects unused bits that aren't zero, so that a value has only one encoding.
//
//nolint:gochecknoglobals // immutable
var encoding = base64.RawURLEncoding.Strict()

// A Keyring seals values and opens them. Create it with [New] or [OpenFile]. A nil
// Keyring and the zero value have no keys: they store plain text. It is safe for
// concurrent use and must not be copied.
type Keyring struct {
	keys atomic.Pointer[keys]
	file *file // nil if the keys aren't from a file
}

// keys is immutable once created. It doesn't hold the keys' bytes.
type keys struct {
	ids   []string // the one that seals first
	aeads map[string]cipher.AEAD
}

// New returns a Keyring with these keys; the first one seals. It fails if there is no
// key, an id can't be part of a sealed value, a key is all zeros, or two keys have the
// same id or the same bytes.
func New(ring ...Key) (*Keyring, error) {
	made, err := makeKeys(ring)
	if err != nil {
		return nil, fmt.Errorf("keyring: %w", err)
	}
	k := new(Keyring)
	k.keys.Store(made)
	return k, nil
}

func makeKeys(ring []Key) (*keys, error) {
	if len(ring) == 0 {
		return nil, errors.New("there is no key")
	}
	made := &keys{aeads: make(map[string]cipher.AEAD, len(ring))}
	seen := make(map[[32]byte]int, len(ring))
	for i, key := range ring {
		if key.ID == "" {
			key.ID = keyID(&key.Secret)
		}
		if !validID(key.ID) {
			return nil, fmt.Errorf("key %d: an id has 1 to %d letters, digits, hyphens or underscores", i+1, maxID)
		}
		if key.Secret == ([32]byte{}) {
			return nil, fmt.Errorf("key %d is all zeros", i+1)
		}
		if twin, ok := seen[key.Secret]; ok {
			return nil, fmt.Errorf("keys %d and %d are the same", twin, i+1)
		}
		seen[key.Secret] = i + 1
		if made.aeads[key.ID] != nil {
			return nil, fmt.Errorf("key %d: another one has the id %s too", i+1, key.ID)
		}
		aead, err := newAEAD(&key.Secret)
		if err != nil {
			return nil, err
		}
		made.ids = append(made.ids, key.ID)
		made.aeads[key.ID] = aead
	}
	return made, nil
}

func newAEAD(secret *[32]byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(secret[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Seal returns plain in its stored form, encrypted under the first key. The context says
// where the value belongs, such as table, column and row. It isn't stored, and
// [Keyring.Open] needs the same context. Without keys the value is plain text, whatever
// the context.
//
// A Keyring of [OpenFile] first reads its file again, at most once a second, so that it
// doesn't keep sealing under a key that another process has replaced. If the file can't
// be read, it seals under the first key it has.
func (k *Keyring) Seal(plain string, context ...string) string {
	k.follow()
	current := k.current()
	if current == nil {
		return plainPrefix + plain
	}
	id := current.ids[0]
	var buf [additionalSize]byte
	sealed := current.aeads[id].Seal(nil, nil, []byte(plain), appendAdditional(buf[:0], id, context)) //nolint:gosec // Seal creates the nonce
	return sealedPrefix + id + "." + encoding.EncodeToString(sealed)
}

// Open returns the plain text of a value that [Keyring.Seal] sealed with the same
// context, with or without keys. It fails with [ErrUnknownKey] or [ErrCorrupt].
func (k *Keyring) Open(sealed string, context ...string) (string, error) {
	if plain, ok := strings.CutPrefix(sealed, plainPrefix); ok {
		return plain, nil
	}
	id, body, err := split(sealed)
	if err != nil {
		return "", err
	}
	aead, err := k.find(id)
	if err != nil {
		return "", err
	}
	ciphertext, err := encoding.DecodeString(body)
	// The length is checked because decoding skips line breaks.
	if err != nil || len(body) != encoding.EncodedLen(len(ciphertext)) {
		return "", fmt.Errorf("%w: not base64url", ErrCorrupt)
	}
	var buf [additionalSize]byte
	plain, err := aead.Open(ciphertext[:0], nil, ciphertext, appendAdditional(buf[:0], id, context))
	if err != nil {
		return "", fmt.Errorf("%w: it does not open with the key %s", ErrCorrupt, id)
	}
	return string(plain), nil
}

// Primary returns the id of the key that seals, or "" if there is none.
func (k *Keyring) Primary() string {
	if current := k.current(); current != nil {
		return current.ids[0]
	}
	return ""
}

// IDs returns the ids of the keys, that of the sealing key first.
func (k *Keyring) IDs() []string {
	if current := k.current(); current != nil {
		return slices.Clone(current.ids)
	}
	return nil
}

// String returns the ids of the keys.
func (k *Keyring) String() string {
	return "keyring(" + strings.Join(k.IDs(), ", ") + ")"
}

// KeyID returns the id of the key that sealed a stored value, or "" if the value is plain
// text. It fails with [ErrCorrupt] if it is neither. It doesn't check whether the value
// can be opened.
func KeyID(sealed string) (id string, err error) {
	if strings.HasPrefix(sealed, plainPrefix) {
		return "", nil
	}
	id, _, err = split(sealed)
	return id, err
}

// split splits a sealed value. The returned id is safe to show. Text without the form of
// an id is never returned, because it might be a secret.
func split(sealed string) (id, body string, err error) {
	rest, ok := strings.CutPrefix(sealed, sealedPrefix)
	if !ok {
		return "", "", fmt.Errorf("%w: in an unknown form", ErrCorrupt)
	}
	id, body, ok = strings.Cut(rest, ".")
	if !ok || !validID(id) {
		return "", "", fmt.Errorf("%w: no key is named", ErrCorrupt)
	}
	return id, body, nil
}

func (k *Keyring) current() *keys {
	if k == nil {
		return nil
	}
	return k.keys.Load()
}

// key returns the key of that id, or nil.
func (k *Keyring) key(id string) cipher.AEAD {
	if current := k.current(); current != nil {
		return current.aeads[id]
	}
	return nil
}

// additionalSize is enough for the additional data of a store's values.
const additionalSize = 192

// appendAdditional appends the additional data of a sealed value. The lengths keep lists
// apart whose concatenated texts are equal.
func appendAdditional(dst []byte, id string, context []string) []byte {
	dst = appendText(appendText(dst, sealedLabel), id)
	for _, text := range context {
		dst = appendText(dst, text)
	}
	return dst
}

func appendText(dst []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(len(text))), text...)
}
