package keyring_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/storage/keyring"
)

func TestGenerate(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(`^[0-9a-f]{8}$`)
	seen := make(map[[32]byte]bool)
	for range 100 {
		key := keyring.Generate()
		if !pattern.MatchString(key.ID) || seen[key.Secret] {
			t.Errorf("got %v, seen before: %t", key, seen[key.Secret])
		}
		seen[key.Secret] = true
		same := newRing(t, keyring.Key{Secret: key.Secret})
		if same.Primary() != key.ID {
			t.Errorf("the key %v is %q elsewhere", key, same.Primary())
		}
		key.Secret[31] ^= 1
		if other := newRing(t, keyring.Key{Secret: key.Secret}); other.Primary() == key.ID {
			t.Errorf("another key than %v has its id", key)
		}
	}
}

// canary returns a key that is easy to find in any encoding: all its bytes are 0xA7.
func canary() keyring.Key {
	return keyring.Key{ID: "canary", Secret: [32]byte(bytes.Repeat([]byte{0xa7}, 32))}
}

// wantSecret checks that a text has the canary's id and none of its bytes.
func wantSecret(t *testing.T, label, text string) {
	t.Helper()
	for _, part := range []string{"a7a7", "a7 a7", "0xa7", `\xa7`, "\xa7", "167", "247", "10100111", "p6en", "§", `\u00a7`} {
		if strings.Contains(strings.ToLower(text), part) {
			t.Errorf("%s shows the key: %s", label, text)
			return
		}
	}
	if !strings.Contains(text, "canary") && !strings.Contains(text, "63616e617279") && !strings.Contains(text, "63616E617279") {
		t.Errorf("%s does not name the key: %s", label, text)
	}
}

func TestKeyIsNotShown(t *testing.T) {
	t.Parallel()
	key := canary()
	type holder struct{ K keyring.Key }
	for _, value := range []any{key, &key, []keyring.Key{key}, map[string]keyring.Key{"": key}, holder{key}, newRing(t, key)} {
		for _, verb := range strings.Fields("%v %+v %#v %s %q %x %X %#x %d %o %b %c %U %e %t %z %10v %-50s") {
			// fmt prints a pointer inside a ring as a number, so the ring is checked with
			// the verbs that a log uses.
			if _, ring := value.(*keyring.Keyring); ring && !strings.Contains("%v %+v %s %q %x %X %10v %-50s", verb) {
				continue
			}
			wantSecret(t, fmt.Sprintf("%s of %T", verb, value), fmt.Sprintf(verb, value))
		}
		var buf bytes.Buffer
		slog.New(slog.NewTextHandler(&buf, nil)).Info("m", slog.Any("canary", value))
		slog.New(slog.NewJSONHandler(&buf, nil)).Info("m", slog.Any("canary", value), slog.Group("g", slog.Any("k", value)))
		wantSecret(t, fmt.Sprintf("slog of %T", value), regexp.MustCompile(`time"?[=:]\S+?[ ,]`).ReplaceAllString(buf.String(), ""))
	}
	for _, value := range []any{key, &key, holder{key}} {
		asJSON, err := json.Marshal(value)
		if err != nil {
			t.Error(err)
		}
		wantSecret(t, "json", string(asJSON))
		asXML, err := xml.Marshal(value)
		if err != nil {
			t.Error(err)
		}
		wantSecret(t, "xml", string(asXML))
	}
	for _, text := range []string{key.String(), key.GoString(), key.LogValue().String(), fmt.Sprint(key), fmt.Sprintln(&key)} {
		wantSecret(t, "a method", text)
	}
	asMember, err := json.Marshal(map[keyring.Key]int{key: 1})
	if err != nil {
		t.Error(err)
	}
	wantSecret(t, "a JSON member", string(asMember))
	if fmt.Sprintf("%x", key) != "key(canary)" || newRing(t, key).String() != "keyring(canary)" {
		t.Errorf("a key prints as %v, a ring as %v", key, newRing(t, key))
	}
}

// Errors about a key don't contain it.
func TestErrorsDoNotShowKeys(t *testing.T) {
	t.Parallel()
	key := canary()
	sealed := newRing(t, key).Seal("hunter2", "row")
	_, twice := keyring.New(key, key)
	_, moved := newRing(t, key).Open(sealed, "hunter2's row")
	_, parsed := keyring.Parse("a7a7a7")
	_, longer := keyring.Parse(strings.Repeat("a7", 31) + "zz")
	_, base64 := keyring.Parse("p6enp6enp6enp6enp6enp6enp6enp6enp6enp6enp6!")
	for _, err := range []error{twice, moved, parsed, longer, base64} {
		if err == nil {
			t.Fatal("no error")
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v shows the plain text or the context", err)
		}
		wantSecret(t, "an error", "canary: "+err.Error())
	}
}
