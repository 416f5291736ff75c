package formsvc_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

var keyPattern = regexp.MustCompile(`^formsvc_[0-9A-Za-z]{49}$`)

// checksum computes the checksum of a key's 43 random characters as secret scanners do: CRC-32 in
// base 62, the lowest digit first.
func checksum(random string) string {
	sum := crc32.ChecksumIEEE([]byte(random))
	var b []byte
	for range 6 {
		b = append(b, base62[sum%62])
		sum /= 62
	}
	return string(b)
}

func (w *world) key(permissions ...formsvc.Permission) (formsvc.Key, string) {
	w.tb.Helper()
	key := must(w.svc.Keys.Create(w.ctx, w.account, formsvc.KeyInput{Name: "some key", Permissions: permissions}))
	return key.Key, key.Value
}

func TestKeyInput(t *testing.T) {
	read := []formsvc.Permission{formsvc.ResponsesRead}
	long := strings.Repeat("ß", 101)
	w := newWorld(t)
	for _, c := range []struct {
		in   formsvc.KeyInput
		want []string
	}{
		{formsvc.KeyInput{Name: long[2:], Permissions: read}, nil},
		{formsvc.KeyInput{}, []string{"/name required", "/permissions required"}},
		{formsvc.KeyInput{Name: long, Permissions: read}, []string{"/name too_long"}},
		{
			formsvc.KeyInput{Name: "k", Permissions: []formsvc.Permission{"files:write", formsvc.FilesRead, ""}},
			[]string{"/permissions/0 unknown_permission", "/permissions/2 unknown_permission"},
		},
		{formsvc.KeyInput{Name: "k", Permissions: read, Expires: -1}, []string{"/expires out_of_range"}},
	} {
		key, err := w.svc.Keys.Create(w.ctx, w.account, c.in)
		wantFaults(t, err, c.want...)
		equal(t, err == nil, key.Value != "", "a value comes with an error, or none without: %t")
	}
}

func TestKeyPermissions(t *testing.T) {
	w := newWorld(t)
	key, value := w.key(formsvc.ResponsesWrite, formsvc.CampaignsRead, formsvc.ResponsesWrite)
	want := []formsvc.Permission{formsvc.CampaignsRead, formsvc.ResponsesWrite}
	p := must(w.svc.Keys.Authenticate(w.ctx, value))
	if !slices.Equal(key.Permissions, want) || p.AccountID != w.account || p.KeyID != key.ID || p.KeyName != "some key" {
		t.Errorf("the key has %q, the principal is %+v", key.Permissions, p)
	}
	for _, permission := range append(formsvc.AllPermissions(), "", "responses") {
		equal(t, p.May(permission), slices.Contains(want, permission), "May(%q) is %t", permission)
	}
}

// The value of a new key is in no log.
func TestNewKeyHidesItsValue(t *testing.T) {
	w := newWorld(t)
	key := must(w.svc.Keys.Create(w.ctx, w.account, formsvc.KeyInput{Name: "k", Permissions: formsvc.AllPermissions()}))
	var log bytes.Buffer
	_, _ = fmt.Fprintf(&log, "%v %+v", key, &key)
	slog.New(slog.NewTextHandler(&log, nil)).Info("created", slog.Any("key", key))
	slog.New(slog.NewJSONHandler(&log, nil)).Info("created", slog.Any("key", key))
	if strings.Contains(log.String(), key.Value) || key.Value == "" || !strings.Contains(log.String(), string(key.ID)) {
		t.Errorf("the log has %s", &log)
	}
}

func TestKeyFormat(t *testing.T) {
	w := newWorld(t, func(o *formsvc.Options) { o.MaxKeys = -1 })
	seen := make(map[string]bool)
	for range 200 {
		key, value := w.key(formsvc.FilesRead)
		if !keyPattern.MatchString(value) {
			t.Fatalf("a key does not match %s", keyPattern)
		}
		random := value[8:51]
		if value[51:] != checksum(random) {
			t.Fatal("a key has another checksum")
		}
		if key.Prefix != value[:14] || key.Hash != sha256.Sum256([]byte(value)) {
			t.Fatalf("a key is kept as %+v", key)
		}
		if seen[random] || strings.HasPrefix(random, "000000") {
			t.Fatalf("a key is not random: %s", random)
		}
		seen[random] = true
	}
}

// A typing error never causes a query.
func TestKeyChecksumCatchesTypingErrors(t *testing.T) {
	w := newWorld(t)
	_, value := w.key(formsvc.FilesRead)
	refused := func(wrong string) {
		t.Helper()
		if wrong == value {
			return
		}
		p, err := w.svc.Keys.Authenticate(w.ctx, wrong)
		if p != nil {
			t.Errorf("a wrong key of %d bytes is accepted", len(wrong))
		}
		wantError(t, err, formsvc.ErrUnauthenticated)
	}
	for i := range len(value) {
		for _, c := range []byte(base62 + "_-. \x00\xff") {
			refused(value[:i] + string([]byte{c}) + value[i+1:])
		}
		refused(value[:i] + value[i+1:])
		refused(value[:i] + "0" + value[i:])
		if i > 0 {
			refused(value[:i-1] + value[i:i+1] + value[i-1:i] + value[i+1:])
		}
	}
	for _, wrong := range []string{
		"", "formsvc_", " " + value, value + " ", value + "\n", strings.ToUpper(value), strings.Repeat(value, 1_200),
		strings.Repeat("é", 57), value[:8] + strings.Repeat("0", 49),
	} {
		refused(wrong)
	}
	equal(t, w.store.count("KeyByHash"), 0, "the store was asked %d times")
	w.authenticated(w.svc, value)
}

// Known keys are cached, unknown ones aren't.
func TestKeyCache(t *testing.T) {
	w := newWorld(t)
	random := strings.Repeat("0", 43)
	for i := range 3 {
		wantError(t, failure(w.svc.Keys.Authenticate(w.ctx, "formsvc_"+random+checksum(random))), formsvc.ErrUnauthenticated)
		equal(t, w.store.count("KeyByHash"), i+1, "%d unknown keys")
	}
	_, value := w.key(formsvc.FilesRead)
	w.store.disturb(nil)
	for range 100 {
		w.authenticated(w.svc, value)
	}
	equal(t, w.store.count("KeyByHash"), 1, "%d questions for one key")
}

func TestAuthenticateDistinguishesErrors(t *testing.T) {
	w := newWorld(t)
	_, value := w.key(formsvc.FilesRead)
	w.store.disturb(func(string, int) error { return formsvc.ErrUnavailable })
	p, err := w.svc.Keys.Authenticate(w.ctx, value)
	wantError(t, err, formsvc.ErrUnavailable)
	if p != nil || err == nil || strings.Contains(err.Error(), value) {
		t.Errorf("got %+v and %v", p, err)
	}
	w.store.disturb(nil)
	w.authenticated(w.svc, value) // the fault isn't remembered
}

func TestKeyExpiry(t *testing.T) {
	w := newWorld(t)
	key, err := w.svc.Keys.Create(w.ctx, w.account, formsvc.KeyInput{
		Name: "k", Permissions: []formsvc.Permission{formsvc.FilesRead}, Expires: time.Hour,
	})
	if err != nil || !key.ExpiresAt.Equal(start().Add(time.Hour)) {
		t.Fatalf("got %+v, %v", key, err)
	}
	for _, c := range []struct {
		after time.Duration
		want  error
	}{
		{0, nil},
		{time.Hour - time.Millisecond, nil}, // this result is cached for a second
		{time.Hour, formsvc.ErrUnauthenticated},
		{time.Hour + time.Hour, formsvc.ErrUnauthenticated},
	} {
		w.clock.set(start().Add(c.after))
		wantError(t, failure(w.svc.Keys.Authenticate(w.ctx, key.Value)), c.want)
	}
	if forever, _ := w.key(formsvc.FilesRead); !forever.ExpiresAt.IsZero() {
		t.Error("a key without Expires expires")
	}
}

func TestRevokeIsSeenElsewhereWithinTTL(t *testing.T) {
	w := newWorld(t)
	key, value := w.key(formsvc.FilesRead)
	other := w.neighbour()
	w.authenticated(w.svc, value)
	w.authenticated(other, value)
	w.clock.add(time.Millisecond)
	wantError(t, other.Keys.Revoke(w.ctx, w.account, key.ID), nil)
	wantError(t, failure(other.Keys.Authenticate(w.ctx, value)), formsvc.ErrUnauthenticated) // at once on the node that revoked it
	w.clock.set(start().Add(min(formsvc.KeyCacheTTL, 2*time.Second)))
	wantError(t, failure(w.svc.Keys.Authenticate(w.ctx, value)), formsvc.ErrUnauthenticated)
}

// If the clock was set back, cached keys aren't used until it has caught up.
func TestRevokeIsSeenAfterTheClockStepsBack(t *testing.T) {
	w := newWorld(t)
	key, value := w.key(formsvc.FilesRead)
	w.authenticated(w.svc, value)
	w.clock.add(-time.Hour)
	wantError(t, w.neighbour().Keys.Revoke(w.ctx, w.account, key.ID), nil)
	w.clock.add(10 * time.Second)
	wantError(t, failure(w.svc.Keys.Authenticate(w.ctx, value)), formsvc.ErrUnauthenticated)
}

func TestRevoke(t *testing.T) {
	w := newWorld(t)
	key, _ := w.key(formsvc.FilesRead)
	w.clock.add(time.Second)
	for range 2 {
		wantError(t, w.svc.Keys.Revoke(w.ctx, w.account, key.ID), nil)
		w.clock.add(time.Second)
	}
	list, err := w.svc.Keys.List(w.ctx, w.account)
	if err != nil || len(list) != 1 || !list[0].RevokedAt.Equal(start().Add(time.Second)) {
		t.Errorf("the keys are %+v, %v", list, err)
	}
	wantError(t, w.svc.Keys.Revoke(w.ctx, w.account, someID), formsvc.ErrNotFound)
}
