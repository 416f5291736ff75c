package keyring_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/storage/keyring"
)

// newRing returns a Keyring with these keys, or with a new one.
func newRing(tb testing.TB, keys ...string) *keyring.Keyring {
	tb.Helper()
	if len(keys) == 0 {
		keys = []string{generated()}
	}
	k, err := keyring.Parse(strings.Join(keys, ","))
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// generated returns the text of a new key.
func generated() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// fixedKey is the key with the bytes 1 to 32.
func fixedKey() string { return hex.EncodeToString(fixedBytes()) }

func fixedBytes() (b []byte) {
	for i := range 32 {
		b = append(b, byte(i+1))
	}
	return b
}

func wantOpen(tb testing.TB, k *keyring.Keyring, want, sealed string, context ...string) {
	tb.Helper()
	if got, err := k.Open(sealed, context...); err != nil || got != want {
		tb.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// wantClosed checks that opening a value fails for that reason.
func wantClosed(tb testing.TB, k *keyring.Keyring, reason error, sealed string, context ...string) {
	tb.Helper()
	got, err := k.Open(sealed, context...)
	if !errors.Is(err, reason) || got != "" {
		tb.Errorf("%q: got %q, %v; want %v", sealed, got, err, reason)
	}
}

func texts() []string {
	return []string{"", "a", "whsec_0123", "Grüße, Welt ☃", "a b\nc.d,e", "p1.x", "s1.00000000.x", "\x00\xff", strings.Repeat("long", 1_000)}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	k := newRing(t, generated(), generated())
	for _, plain := range texts() {
		for _, context := range [][]string{nil, {""}, {"webhooks", "secret", "id"}, texts()} {
			sealed := k.Seal(plain, context...)
			wantOpen(t, k, plain, sealed, context...)
			if !strings.HasPrefix(sealed, "s1."+k.Primary()+".") || strings.ContainsFunc(sealed, func(r rune) bool { return r <= ' ' || r > '~' }) {
				t.Errorf("%q is sealed as %q", plain, sealed)
			}
			if len(plain) > 5 && strings.Contains(sealed, plain) {
				t.Errorf("%q can be read in %q", plain, sealed)
			}
			if id, err := keyring.KeyID(sealed); err != nil || id != k.Primary() {
				t.Errorf("KeyID: %q, %v", id, err)
			}
		}
	}
}

func TestSealsOfOneValueDiffer(t *testing.T) {
	t.Parallel()
	k := newRing(t)
	nonces := make(map[string]bool)
	for range 1_000 {
		body := strings.Split(k.Seal("same"), ".")[2]
		nonces[body[:16]] = true // 96 bits
	}
	if len(nonces) != 1_000 {
		t.Errorf("%d nonces for 1000 values", len(nonces))
	}
}

// Without keys values are plain text; a ring with keys opens them and seals them again.
func TestPlainValuesOpenAndAreSealedAgain(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	for _, k := range []*keyring.Keyring{nil, {}} {
		for _, plain := range texts() {
			sealed := k.Seal(plain, "row")
			if sealed != "p1."+plain {
				t.Errorf("%q is stored as %q", plain, sealed)
			}
			wantOpen(t, k, plain, sealed, "row")
			wantOpen(t, ring, plain, sealed, "row")
			if id, err := keyring.KeyID(sealed); err != nil || id != "" {
				t.Errorf("KeyID: %q, %v", id, err)
			}
		}
		wantClosed(t, k, keyring.ErrUnknownKey, ring.Seal("secret"))
		if k.Primary() != "" || len(k.IDs()) != 0 {
			t.Errorf("it has the keys %q, the first %q", k.IDs(), k.Primary())
		}
	}
}

// A value opens only with the context it was sealed with.
func TestMovedValueDoesNotOpen(t *testing.T) {
	t.Parallel()
	k := newRing(t)
	contexts := [][]string{
		nil, {""}, {"", ""}, {"webhooks", "secret", "1"}, {"webhooks", "secret", "2"}, {"webhooks", "secret"},
		{"webhooks", "secret1"}, {"webhookssecret1"}, {"webhook", "ssecret", "1"}, {"webhooks", "secret", "1", ""},
		{"secret", "webhooks", "1"}, {"\x00\x00\x00\x00\x00\x00\x00\x00"},
	}
	for i, from := range contexts {
		sealed := k.Seal("secret", from...)
		for j, to := range contexts {
			if i == j {
				wantOpen(t, k, "secret", sealed, to...)
			} else {
				wantClosed(t, k, keyring.ErrCorrupt, sealed, to...)
			}
		}
	}
}

func TestValueDoesNotOpenWithOtherRing(t *testing.T) {
	t.Parallel()
	first, second := generated(), generated()
	sealed := newRing(t, first).Seal("secret", "row")

	wantOpen(t, newRing(t, second, first), "secret", sealed, "row")
	other := newRing(t, second)
	wantClosed(t, other, keyring.ErrUnknownKey, sealed, "row")
	if _, err := other.Open(sealed, "row"); err == nil || !strings.Contains(err.Error(), newRing(t, first).Primary()) {
		t.Errorf("%v does not name the key", err)
	}
}

// A value with any bit changed, or anything added or removed, doesn't open.
func TestDamagedValueDoesNotOpen(t *testing.T) {
	t.Parallel()
	k := newRing(t)
	for _, plain := range []string{"", "a", "ab", "whsec_0123456789"} {
		sealed := k.Seal(plain, "row")
		closed := func(damaged string) {
			t.Helper()
			if got, err := k.Open(damaged, "row"); err == nil || got != "" {
				t.Errorf("%q, damaged to %q, opens as %q, %v", sealed, damaged, got, err)
			}
		}
		for i := range len(sealed) {
			for bit := range 8 {
				damaged := []byte(sealed)
				damaged[i] ^= 1 << bit
				closed(string(damaged))
			}
			closed(sealed[:i])
			closed(sealed[:i] + sealed[i+1:])
			for _, more := range []string{"\n", "\r\n", "A", "=", ".", " "} {
				closed(sealed[:i] + more + sealed[i:])
				closed(sealed + more)
			}
		}
	}
}

// The error for a value in an unknown form contains nothing of it.
func TestErrorOfUnknownFormShowsNothing(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	for _, value := range []string{
		"", ".", "p1", "s1", "P1.hunter2", "s2.0123abcd.hunter2", "hunter2", " p1.hunter2", "whsec_hunter2", "s1.hunter2",
		"s1..hunter2", "s1.hunter2 hunter2.x", "s1.hünter2.hunter2", "s1." + strings.Repeat("hunter2", 10) + ".x",
	} {
		for _, k := range []*keyring.Keyring{nil, ring} {
			wantClosed(t, k, keyring.ErrCorrupt, value)
			if _, err := k.Open(value); err == nil || strings.Contains(err.Error(), "unter2") {
				t.Errorf("%q: %v", value, err)
			}
		}
		if id, err := keyring.KeyID(value); !errors.Is(err, keyring.ErrCorrupt) || id != "" {
			t.Errorf("KeyID of %q: %q, %v", value, id, err)
		}
	}
}

// The values were made with Python's "cryptography" from the package's documentation. The
// stored form must never change.
func TestGolden(t *testing.T) {
	t.Parallel()
	k := newRing(t, fixedKey())
	if k.Primary() != "f8399b52" {
		t.Errorf("the key's id is %q", k.Primary())
	}
	wantOpen(t, k, "whsec_Grüße, Welt",
		"s1.f8399b52.oKGio6SlpqeoqaqrzrlOA57qHXa8smH0lKkA0zK7xFAUKt7qqZOd2A0-DES3CDY",
		"webhooks", "secret", "0193e2c4-7b7a-7c3e-8f52-0a1b2c3d4e5f")
	wantOpen(t, k, "", "s1.f8399b52.oKGio6SlpqeoqaqrgX6PhnDzT7d7JJdNU-5e7w")
}

// A sealed value can be opened with only what the documentation says.
func TestSealAsDescribed(t *testing.T) {
	t.Parallel()
	parts := strings.Split(newRing(t, fixedKey()).Seal("whsec_0123", "webhooks", "secret"), ".")
	body, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || parts[0] != "s1" {
		t.Fatal(parts, err)
	}
	block, err := aes.NewCipher(fixedBytes())
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	var additional []byte
	for _, text := range []string{"formsvc keyring s1", parts[1], "webhooks", "secret"} {
		additional = binary.BigEndian.AppendUint64(additional, uint64(len(text)))
		additional = append(additional, text...)
	}
	if plain, err := gcm.Open(nil, body[:12], body[12:], additional); err != nil || string(plain) != "whsec_0123" {
		t.Errorf("got %q, %v", plain, err)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	a, b := generated(), generated()
	for want, keys := range map[string][]string{"no key": nil, "key 2 is all zeros": {a, strings.Repeat("0", 64)}, "key 3 is": {a, b, a}} {
		if k, err := keyring.Parse(strings.Join(keys, "\n")); k != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, %v; want %q", k, err, want)
		}
	}
	if k := newRing(t, a, b); !slices.Equal(k.IDs(), []string{newRing(t, a).Primary(), newRing(t, b).Primary()}) || k.Primary() != k.IDs()[0] {
		t.Errorf("the ids are %q", k.IDs())
	}
}

// Keys are read in every form, and neither they nor errors about them show their bytes.
func TestParse(t *testing.T) {
	t.Parallel()
	b := fixedBytes()
	text := hex.EncodeToString(b) + " # a comment, with a comma\n" + generated() + "," + generated() + "\n\n"
	for _, form := range []string{
		hex.EncodeToString(b), strings.ToUpper(hex.EncodeToString(b)), base64.StdEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b), text,
	} {
		ring, err := keyring.Parse(form)
		if err != nil || ring.Primary() != "f8399b52" || form == text && len(ring.IDs()) != 3 {
			t.Errorf("%q: the keys %v, %v", form, ring.IDs(), err)
		}
	}
	for _, wrong := range []string{"hunter2", text + ",hunter2", strings.Repeat("g", 64), base64.StdEncoding.EncodeToString(b[1:])} {
		if _, err := keyring.Parse(wrong); err == nil || strings.Contains(err.Error(), "unter2") || strings.Contains(err.Error(), "ggg") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
		ring := newRing(t, fixedKey())
		if got := fmt.Sprintf(verb, ring); strings.Contains(got, fixedKey()[:16]) || strings.Contains(got, "1 2 3 4 5") || strings.Contains(got, "0x1, 0x2, 0x3") {
			t.Errorf("%s: %s", verb, got)
		}
	}
}
