package sqltest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// key returns the key of that name.
func key(t testing.TB, name string) keyring.Key {
	t.Helper()
	keys, err := keyring.Parse(fmt.Sprintf("%x", sha256.Sum256([]byte(name))))
	must(t, err)
	return keys[0]
}

// ring returns a keyring of the keys of these names.
func ring(t testing.TB, names ...string) *keyring.Keyring {
	t.Helper()
	keys := make([]keyring.Key, len(names))
	for i, name := range names {
		keys[i] = key(t, name)
	}
	k, err := keyring.New(keys...)
	must(t, err)
	return k
}

// open opens a store with the keys, and fails the test on an error.
func (d *Database) open(t testing.TB, ring *keyring.Keyring) Store {
	t.Helper()
	s, err := d.OpenWith(t, ring)
	must(t, err)
	return s
}

// newSecretScene returns a scene on a store with the keys.
func newSecretScene(t *testing.T, d Database, ring *keyring.Keyring) *scene {
	t.Helper()
	s := &scene{Store: d.open(t, ring), now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	s.fill(t)
	return s
}

// sealed are the columns of a webhook that contain secrets.
type sealed struct {
	Secret         string
	PreviousSecret string
	Headers        string
}

func (v *sealed) texts() []string { return []string{v.Secret, v.PreviousSecret, v.Headers} }

func stored(t testing.TB, d Database, id formsvc.ID) sealed {
	t.Helper()
	var v sealed
	must(t, d.DB.NewSelect().Table("formsvc_webhooks").Column("secret", "previous_secret", "headers").
		Where("id = ?", string(id)).Scan(t.Context(), &v))
	return v
}

// store changes a column of a webhook without the store.
func store(t testing.TB, d Database, id formsvc.ID, column, text string) {
	t.Helper()
	_, err := d.DB.NewUpdate().Table("formsvc_webhooks").Set("? = ?", bun.Ident(column), text).
		Where("id = ?", string(id)).Exec(t.Context())
	must(t, err)
}

// wantHook checks that a webhook is read as it was created, and that deliveries use all
// of it.
func wantHook(t testing.TB, s *scene, want *formsvc.Webhook) {
	t.Helper()
	got, err := s.Webhook(t.Context(), formsvc.WebhookKey{AccountID: want.AccountID, ID: want.ID})
	must(t, err)
	if got.Secret != want.Secret || got.Previous != want.Previous || len(got.Headers) != 1 || got.Headers[0] != want.Headers[0] {
		t.Errorf("webhook %s does not have its secrets anymore", want.ID)
	}
}

// endpoint returns the endpoint of the scene's webhook, as deliveries use it.
func (s *scene) endpoint(t testing.TB) delivery.Endpoint {
	t.Helper()
	r, change := s.response("R" + string(s.id()))
	must(t, s.CreateResponse(t.Context(), r, 1, change))
	list, err := s.Ready(t.Context(), s.now)
	must(t, err)
	for _, e := range list {
		if e.ID == string(s.hook.ID) {
			return e
		}
	}
	t.Fatal("the webhook is not ready")
	return delivery.Endpoint{}
}

// noSecrets checks that a text contains none of the secrets.
func noSecrets(t testing.TB, text string, secrets ...string) {
	t.Helper()
	for _, secret := range secrets {
		if secret != "" && strings.Contains(text, secret) {
			t.Errorf("%q repeats something secret", text)
		}
	}
}

func secretsSealed(t *testing.T, d Database) {
	s := newSecretScene(t, d, ring(t, "a"))
	wantHook(t, s, &s.hook)
	v := stored(t, d, s.hook.ID)
	for _, text := range v.texts() {
		noSecrets(t, text, s.hook.Secret, s.hook.Previous, s.hook.Headers[0].Name, s.hook.Headers[0].Value)
		if id, err := keyring.KeyID(text); id != key(t, "a").ID() || err != nil {
			t.Errorf("a value under the key %q (%v)", id, err)
		}
	}
	e := s.endpoint(t)
	if e.Err != nil || e.Secret != s.hook.Secret || e.Previous != s.hook.Previous || e.Headers.Get("X-Token") != s.hook.Headers[0].Value {
		t.Errorf("endpoint with error %v, or without its secrets", e.Err)
	}
	s.now = s.hook.PreviousUntil
	if e := s.endpoint(t); e.Err != nil || e.Previous != "" {
		t.Errorf("the previous secret signs when its time is over (%v)", e.Err)
	}
	var bound formsvc.Webhook
	must(t, d.DB.RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
		b, err := d.Bind(tx, ring(t, "a"))
		if err != nil {
			return err
		}
		bound, err = b.UpdateWebhook(ctx, s.key(), func(hook *formsvc.Webhook) (formsvc.Change, error) {
			hook.Version++
			hook.Secret += ", changed"
			return formsvc.Change{}, nil
		})
		return err
	}))
	wantHook(t, s, &bound)
	if id, err := keyring.KeyID(stored(t, d, s.hook.ID).Secret); id != key(t, "a").ID() || err != nil {
		t.Errorf("a bound store stored a value under the key %q (%v)", id, err)
	}
}

func secretsReadable(t *testing.T, d Database) {
	s := newSecretScene(t, d, nil)
	wantHook(t, s, &s.hook)
	if v := stored(t, d, s.hook.ID); !strings.HasSuffix(v.Secret, s.hook.Secret) {
		t.Error("without keys a secret is not stored in plain text")
	}
	later := &scene{Store: d.open(t, ring(t, "a")), account: s.account}
	wantHook(t, later, &s.hook)
}

// secretsMoved copies sealed values to the wrong places.
func secretsMoved(t *testing.T, d Database) {
	s := newSecretScene(t, d, ring(t, "a"))
	other := s.addWebhook(t)
	store(t, d, s.hook.ID, "secret", stored(t, d, other.ID).Secret)
	store(t, d, other.ID, "previous_secret", stored(t, d, other.ID).Secret)
	if got, err := s.Webhook(t.Context(), s.key()); err != nil || got.Secret != "" {
		t.Errorf("the secret of another webhook was read (%v)", err)
	}
	if got, err := s.Webhook(t.Context(), formsvc.WebhookKey{AccountID: s.account, ID: other.ID}); err != nil || got.Previous != "" {
		t.Errorf("a secret was read as the previous one (%v)", err)
	}
}

// secretsUnread has values that can't be opened. The webhook can be shown, nothing is
// sent to it, and it works again with a new secret.
func secretsUnread(t *testing.T, d Database) {
	s := newSecretScene(t, d, ring(t, "a"))
	for _, broken := range []string{"s1.00000000.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "s1." + key(t, "a").ID() + ".AAAA", "nonsense"} {
		s.hook = s.addWebhook(t)
		for _, column := range []string{"secret", "previous_secret", "headers"} {
			store(t, d, s.hook.ID, column, broken)
		}
		got, err := s.Webhook(t.Context(), s.key())
		if err != nil || got.Secret != "" || got.Previous != "" || got.Headers != nil || got.URL != s.hook.URL {
			t.Errorf("Webhook: %v, or not without secrets", err)
		}
		list, err := s.Webhooks(t.Context(), s.account)
		if err != nil || len(list) != 2 || list[0].Secret == "" || list[1].Secret != "" {
			t.Errorf("Webhooks: %v, or one of them not as it should be", err)
		}
		e := s.endpoint(t)
		if e.Err == nil || e.Secret != "" {
			t.Fatalf("endpoint with error %v, want one, and no secret", e.Err)
		}
		noSecrets(t, e.Err.Error(), broken, s.hook.Secret)
		mended, err := s.UpdateWebhook(t.Context(), s.key(), func(hook *formsvc.Webhook) (formsvc.Change, error) {
			hook.Version++
			hook.Secret, hook.Previous, hook.PreviousUntil, hook.Headers = "another secret", "", time.Time{}, nil
			return formsvc.Change{}, nil
		})
		must(t, err)
		if e := s.endpoint(t); e.Err != nil || e.Secret != mended.Secret || e.Headers != nil {
			t.Errorf("with a new secret the endpoint has the error %v", e.Err)
		}
		if v := stored(t, d, s.hook.ID); v.PreviousSecret != "" || v.Headers != "" {
			t.Error("what did not open is still there after it was replaced by nothing")
		}
		must(t, s.DeleteWebhook(t.Context(), s.key(), formsvc.Change{}))
	}
}

// secretsKept changes a webhook whose values can't be opened. What the change leaves
// alone stays as it is, in case the key is found.
func secretsKept(t *testing.T, d Database) {
	s := newSecretScene(t, d, ring(t, "a"))
	before := stored(t, d, s.hook.ID)
	disable := func(hook *formsvc.Webhook) (formsvc.Change, error) {
		hook.Version++
		hook.Disabled = !hook.Disabled
		return formsvc.Change{}, nil
	}
	update := func(decide func(*formsvc.Webhook) (formsvc.Change, error)) sealed {
		_, err := s.UpdateWebhook(t.Context(), s.key(), decide)
		must(t, err)
		return stored(t, d, s.hook.ID)
	}
	if update(disable) != before {
		t.Error("unchanged values were sealed again")
	}
	for _, column := range []string{"secret", "previous_secret", "headers"} {
		store(t, d, s.hook.ID, column, "s1.00000000.AAAA")
	}
	lost := stored(t, d, s.hook.ID)
	if update(disable) != lost {
		t.Error("values that do not open were touched")
	}
	got := update(func(hook *formsvc.Webhook) (formsvc.Change, error) {
		hook.Version++
		hook.Headers = nil
		return formsvc.Change{}, nil
	})
	if got.Headers != "" || got.Secret != lost.Secret {
		t.Error("headers that do not open can't be removed, or took the secret along")
	}
}

func secretsMissing(t *testing.T, d Database) {
	s := newSecretScene(t, d, ring(t, "a"))
	refused := func(what string, ring *keyring.Keyring, missing string) {
		t.Helper()
		_, err := d.OpenWith(t, ring)
		if !errors.Is(err, keyring.ErrUnknownKey) || !strings.Contains(err.Error(), missing) {
			t.Errorf("%s: %v, want one that names the key %s", what, err, missing)
		}
	}
	refused("another key", ring(t, "b-key"), key(t, "a").ID())
	refused("no key", nil, key(t, "a").ID())
	d.open(t, ring(t, "b-key", "a")) // seals with b-key from now on
	refused("only the old key", ring(t, "a"), key(t, "b-key").ID())
	refused("only the new key", ring(t, "b-key"), key(t, "a").ID())
	d.open(t, ring(t, "a", "b-key"))
	// A key first used while a store is open is recorded with its first value.
	must(t, d.DB.RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
		b, err := d.Bind(tx, ring(t, "c-key", "b-key", "a"))
		if err != nil {
			return err
		}
		_, err = b.UpdateWebhook(ctx, s.key(), func(hook *formsvc.Webhook) (formsvc.Change, error) {
			hook.Version++
			hook.Secret += ", changed"
			return formsvc.Change{}, nil
		})
		return err
	}))
	refused("without a key that came later", ring(t, "a", "b-key"), key(t, "c-key").ID())
}
