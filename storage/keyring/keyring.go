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

// The reasons why a value does not open. Errors name the key, never its bytes
// and nothing of the value.
var (
	// ErrUnknownKey means that the key is not in the ring. The text of the
	// error says which one. It may be there a second later: see [OpenFile].
	ErrUnknownKey = errors.New("keyring: unknown key")

	// ErrCorrupt means that the value was damaged, belongs to another place,
	// was sealed under another key of the same name, or is no stored value at
	// all. Trying again does not help.
	ErrCorrupt = errors.New("keyring: corrupt value")
)

const (
	sealedPrefix = "s1."
	plainPrefix  = "p1."
	sealedLabel  = "formsvc keyring s1"
)

// encoding refuses unused bits that are not zero, so that a value has one
// spelling only.
//
//nolint:gochecknoglobals // immutable
var encoding = base64.RawURLEncoding.Strict()

// A Keyring seals values and opens them. Make it with [New] or [OpenFile]. A nil
// Keyring and the zero one have no keys: they store plain text. It is safe for
// concurrent use and must not be copied.
type Keyring struct {
	keys atomic.Pointer[keys]
	file *file // nil when the keys come from elsewhere
}

// keys never changes once it is made. It does not hold the keys' bytes.
type keys struct {
	ids   []string // the one that seals first
	aeads map[string]cipher.AEAD
}

// New returns a Keyring with these keys, of which the first one seals. It fails
// when there is no key, an id can't stand in a sealed value, a key is all zeros,
// or two have the same id or the same bytes.
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

// Seal returns plain in the form that is stored, encrypted under the first key.
// The context says where the value belongs, such as table, column and row; it is
// not stored, and [Keyring.Open] needs the same. Without keys the value is plain
// text, whatever the context.
//
// A Keyring of [OpenFile] looks into its file first, at most once a second, so
// that it does not go on sealing under a key that another process has replaced.
// When the file can't be read it seals under the first key it has.
func (k *Keyring) Seal(plain string, context ...string) string {
	k.follow()
	current := k.current()
	if current == nil {
		return plainPrefix + plain
	}
	id := current.ids[0]
	var buf [additionalSize]byte
	sealed := current.aeads[id].Seal(nil, nil, []byte(plain), appendAdditional(buf[:0], id, context)) //nolint:gosec // it makes its nonce itself
	return sealedPrefix + id + "." + encoding.EncodeToString(sealed)
}

// Open returns the plain text of a value that [Keyring.Seal] made for the same
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
	// Decoding skips line ends.
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

// Primary returns the id of the key that seals, or "" when there is none.
func (k *Keyring) Primary() string {
	if current := k.current(); current != nil {
		return current.ids[0]
	}
	return ""
}

// IDs returns the ids of the keys, the one that seals first.
func (k *Keyring) IDs() []string {
	if current := k.current(); current != nil {
		return slices.Clone(current.ids)
	}
	return nil
}

// String names the keys.
func (k *Keyring) String() string {
	return "keyring(" + strings.Join(k.IDs(), ", ") + ")"
}

// KeyID returns the id of the key that sealed a stored value, or "" when the
// value is plain. It fails with [ErrCorrupt] when it is neither. It does not say
// whether the value opens.
func KeyID(sealed string) (id string, err error) {
	if strings.HasPrefix(sealed, plainPrefix) {
		return "", nil
	}
	id, _, err = split(sealed)
	return id, err
}

// split takes a sealed value apart. An id that it returns can be shown: what is
// not shaped like one might be anything, even a secret.
func split(sealed string) (id, body string, err error) {
	rest, ok := strings.CutPrefix(sealed, sealedPrefix)
	if !ok {
		return "", "", fmt.Errorf("%w: not in a form that is known", ErrCorrupt)
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

// additionalSize has room for the additional data of a store's values.
const additionalSize = 192

// appendAdditional appends what a sealed value is bound to. Lengths keep lists
// apart whose texts are the same when put together.
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
