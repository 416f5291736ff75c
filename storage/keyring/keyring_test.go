package keyring_test

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/formsvc/toolkit/storage/keyring"
)

// newRing returns a Keyring with these keys.
func newRing(tb testing.TB, keys ...keyring.Key) *keyring.Keyring {
	tb.Helper()
	k, err := keyring.New(keys...)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// fixedKey is the key with the bytes 1 to 32.
func fixedKey() keyring.Key {
	var key keyring.Key
	for i := range key.Secret {
		key.Secret[i] = byte(i + 1)
	}
	return key
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
	k := newRing(t, keyring.Generate(), keyring.Generate())
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
	k := newRing(t, keyring.Generate())
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
	ring := newRing(t, keyring.Generate())
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
		if k.Primary() != "" || len(k.IDs()) != 0 || k.Reload() != nil || k.String() != "keyring()" {
			t.Errorf("%v has the keys %q, the first %q", k, k.IDs(), k.Primary())
		}
	}
}

// A value opens only with the context it was sealed with.
func TestMovedValueDoesNotOpen(t *testing.T) {
	t.Parallel()
	k := newRing(t, keyring.Generate())
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
	first, second := keyring.Generate(), keyring.Generate()
	sealed := newRing(t, first).Seal("secret", "row")

	wantOpen(t, newRing(t, second, first), "secret", sealed, "row")
	other := newRing(t, second)
	wantClosed(t, other, keyring.ErrUnknownKey, sealed, "row")
	if _, err := other.Open(sealed, "row"); err == nil || !strings.Contains(err.Error(), first.ID) {
		t.Errorf("%v does not name the key %s", err, first.ID)
	}
	second.ID = first.ID
	wantClosed(t, newRing(t, second), keyring.ErrCorrupt, sealed, "row")

	// The id is bound, too: the same bytes with another id don't open it.
	renamed := first
	renamed.ID = "renamed"
	_, body, _ := strings.Cut(sealed[len("s1."):], ".")
	wantClosed(t, newRing(t, renamed), keyring.ErrCorrupt, "s1.renamed."+body, "row")
}

// A value with any bit changed, or anything added or removed, doesn't open.
func TestDamagedValueDoesNotOpen(t *testing.T) {
	t.Parallel()
	k := newRing(t, keyring.Generate())
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
	ring := newRing(t, keyring.Generate())
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
	key := fixedKey()
	parts := strings.Split(newRing(t, key).Seal("whsec_0123", "webhooks", "secret"), ".")
	body, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || parts[0] != "s1" {
		t.Fatal(parts, err)
	}
	block, err := aes.NewCipher(key.Secret[:])
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

func TestNew(t *testing.T) {
	t.Parallel()
	a, b := keyring.Generate(), keyring.Generate()
	named := func(key keyring.Key, id string) keyring.Key {
		key.ID = id
		return key
	}
	for _, c := range []struct {
		label string
		keys  []keyring.Key
		want  string // part of the error
	}{
		{"two", []keyring.Key{a, b}, ""},
		{"longest id", []keyring.Key{named(a, strings.Repeat("aZ0_", 15)+"-AZz9"[:4])}, ""},
		{"none", nil, "no key"},
		{"zeros", []keyring.Key{a, {}}, "key 2 is all zeros"},
		{"twice", []keyring.Key{a, b, a}, "keys 1 and 3 are the same"},
		{"twice under two ids", []keyring.Key{a, named(a, "other")}, "keys 1 and 2 are the same"},
		{"an id twice", []keyring.Key{a, named(b, a.ID)}, "another one has the id " + a.ID},
		{"dot", []keyring.Key{named(a, "a.b")}, "key 1: an id"},
		{"space", []keyring.Key{named(a, "a b")}, "key 1: an id"},
		{"at sign", []keyring.Key{named(a, "a@b")}, "key 1: an id"},
		{"bracket", []keyring.Key{named(a, "a[b")}, "key 1: an id"},
		{"umlaut", []keyring.Key{named(a, "ä")}, "key 1: an id"},
		{"long id", []keyring.Key{named(a, strings.Repeat("a", 65))}, "key 1: an id"},
	} {
		t.Run(c.label, func(t *testing.T) {
			t.Parallel()
			k, err := keyring.New(c.keys...)
			if c.want != "" {
				if k != nil || err == nil || !strings.HasPrefix(err.Error(), "keyring: ") || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, %v", k, err)
				}
				return
			}
			if err != nil || k.Primary() != c.keys[0].ID || len(k.IDs()) != len(c.keys) {
				t.Fatalf("got %v, %v", k, err)
			}
			wantOpen(t, k, "secret", k.Seal("secret"))
		})
	}
	k := newRing(t, a, b)
	k.IDs()[0] = "changed"
	if !slices.Equal(k.IDs(), []string{a.ID, b.ID}) {
		t.Errorf("the ids are %q", k.IDs())
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	path, k := newFile(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				wantOpen(t, k, "secret", k.Seal("secret", "row"), "row")
				if err := k.Reload(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 3 {
		if _, err := keyring.AddKey(path); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	if err := k.Reload(); err != nil || len(k.IDs()) != 4 {
		t.Errorf("%v after three more keys: %v", k, err)
	}
}

func BenchmarkSeal(b *testing.B) {
	k := newRing(b, keyring.Generate())
	b.ReportAllocs()
	for b.Loop() {
		k.Seal("whsec_0123456789012345678901234567890123456789012", "webhooks", "secret", "0193e2c4-7b7a-7c3e-8f52-0a1b2c3d4e5f")
	}
}

func BenchmarkOpen(b *testing.B) {
	k := newRing(b, keyring.Generate())
	context := []string{"webhooks", "secret", "0193e2c4-7b7a-7c3e-8f52-0a1b2c3d4e5f"}
	sealed := k.Seal("whsec_0123456789012345678901234567890123456789012", context...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Open(sealed, context...); err != nil {
			b.Fatal(err)
		}
	}
}
