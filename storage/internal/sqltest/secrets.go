package sqltest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// ring returns a keyring of the keys of these names; nil for none.
func ring(t testing.TB, names ...string) *keyring.Keyring {
	t.Helper()
	if len(names) == 0 {
		return nil
	}
	text := ""
	for _, name := range names {
		text += fmt.Sprintf("%x\n", sha256.Sum256([]byte(name)))
	}
	k := must(keyring.Parse(text))
	return k
}

func keyID(t testing.TB, name string) string { return ring(t, name).Primary() }

// open opens a store with the keys of these names.
func (d *Database) open(t testing.TB, names ...string) Store {
	t.Helper()
	s := must(d.OpenWith(t, ring(t, names...)))
	return s
}

// columns returns those of a webhook that contain secrets.
func columns() []string { return []string{"secret", "previous_secret", "headers"} }

// stored returns the secret columns of a webhook.
func stored(t testing.TB, d Database, id formsvc.ID) (texts [3]string) {
	t.Helper()
	noError(t, d.DB.NewSelect().Table("formsvc_webhooks").Column(columns()...).Where("id = ?", bunstore.ID(id)).
		Scan(t.Context(), &texts[0], &texts[1], &texts[2]))
	return texts
}

// spoil changes columns of a webhook without the store.
func spoil(t testing.TB, d Database, id formsvc.ID, text string, columns ...string) {
	t.Helper()
	for _, column := range columns {
		must(d.DB.NewUpdate().Table("formsvc_webhooks").Set("? = ?", bun.Ident(column), text).Where("id = ?", bunstore.ID(id)).Exec(t.Context()))
	}
}

// wantUnder checks how many values of webhooks are stored under each key; "" is none.
func wantUnder(t testing.TB, d Database, want map[string]int, hooks ...formsvc.Webhook) {
	t.Helper()
	got := make(map[string]int)
	for _, hook := range hooks {
		for _, text := range stored(t, d, hook.ID) {
			id, err := keyring.KeyID(text)
			if err != nil {
				id = "corrupt"
			}
			got[id]++
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("values by key: %v, want %v", got, want)
	}
}

// wantHook checks that a webhook is read as it was created.
func wantHook(t testing.TB, s formsvc.Store, want *formsvc.Webhook) {
	t.Helper()
	got := must(s.Webhook(t.Context(), formsvc.WebhookKey{AccountID: want.AccountID, ID: want.ID}))
	if got.Secret != want.Secret || got.Previous != want.Previous || len(got.Headers) != 1 || got.Headers[0] != want.Headers[0] {
		t.Errorf("webhook %s does not have its secrets anymore", want.ID)
	}
}

// change updates the scene's webhook.
func (s *scene) change(t testing.TB, on formsvc.Store, edit func(*formsvc.Webhook)) formsvc.Webhook {
	t.Helper()
	hook, err := on.UpdateWebhook(t.Context(), s.key(), func(hook *formsvc.Webhook) (formsvc.Change, error) {
		hook.Version++
		edit(hook)
		return formsvc.Change{}, nil
	})
	noError(t, err)
	return hook
}

func another(hook *formsvc.Webhook) { hook.Secret = "another secret" }

// endpoint returns the endpoint of the scene's webhook, as deliveries use it.
func (s *scene) endpoint(t testing.TB) delivery.Endpoint {
	t.Helper()
	r, change := s.response("R" + string(s.id()))
	noError(t, s.CreateResponse(t.Context(), r, 1, change))
	list := must(s.Ready(t.Context(), s.now))
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
		if strings.Contains(text, secret) {
			t.Errorf("%q repeats something secret", text)
		}
	}
}

func secretsSealed(t *testing.T, d Database) {
	s := newScene(t, d, "a")
	wantHook(t, s, &s.hook)
	for _, text := range stored(t, d, s.hook.ID) {
		noSecrets(t, text, s.hook.Secret, s.hook.Previous, s.hook.Headers[0].Name, s.hook.Headers[0].Value)
	}
	wantUnder(t, d, map[string]int{keyID(t, "a"): 3}, s.hook)
	if e := s.endpoint(t); e.Err != nil || e.Secret != s.hook.Secret || e.Previous != s.hook.Previous || e.Headers.Get("X-Token") != s.hook.Headers[0].Value {
		t.Errorf("endpoint with error %v, or without its secrets", e.Err)
	}
	s.now = s.hook.PreviousUntil
	if e := s.endpoint(t); e.Err != nil || e.Previous != "" {
		t.Errorf("the previous secret signs when its time is over (%v)", e.Err)
	}
	noError(t, d.bound(t, ring(t, "a"), func(_ bun.Tx, b formsvc.Store) error {
		s.hook = s.change(t, b, another)
		return nil
	}))
	wantHook(t, s, &s.hook)
	wantUnder(t, d, map[string]int{keyID(t, "a"): 3}, s.hook)
}

// secretsMoved copies sealed values to the wrong places.
func secretsMoved(t *testing.T, d Database) {
	s := newScene(t, d, "a")
	text := stored(t, d, s.addWebhook(t).ID)[0]
	spoil(t, d, s.hook.ID, text, "secret")
	if got, err := s.Webhook(t.Context(), s.key()); err != nil || got.Secret != "" {
		t.Errorf("the secret of another webhook was read (%v)", err)
	}
	s.hook = s.addWebhook(t)
	spoil(t, d, s.hook.ID, stored(t, d, s.hook.ID)[0], "previous_secret")
	if got, err := s.Webhook(t.Context(), s.key()); err != nil || got.Secret == "" || got.Previous != "" {
		t.Errorf("a secret was read as the previous one (%v)", err)
	}
}

// secretsUnread has values that can't be opened. The webhook can be shown, nothing is sent to it, and it works again with a
// new secret. What a change leaves alone stays as it is, in case the key is found.
func secretsUnread(t *testing.T, d Database) {
	s := newScene(t, d, "a")
	disable := func(hook *formsvc.Webhook) { hook.Disabled = !hook.Disabled }
	before := stored(t, d, s.hook.ID)
	if s.change(t, s, disable); stored(t, d, s.hook.ID) != before {
		t.Error("unchanged values were sealed again")
	}
	for _, broken := range []string{"s1.00000000.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "s1." + keyID(t, "a") + ".AAAA", "nonsense"} {
		s.hook = s.addWebhook(t)
		spoil(t, d, s.hook.ID, broken, columns()...)
		got, err := s.Webhook(t.Context(), s.key())
		if err != nil || got.Secret != "" || got.Previous != "" || got.Headers != nil || got.URL != s.hook.URL {
			t.Errorf("Webhook: %v, or not without secrets", err)
		}
		if list, err := s.Webhooks(t.Context(), s.account); err != nil || len(list) != 2 || list[0].Secret == "" || list[1].Secret != "" {
			t.Errorf("Webhooks: %v, or one of them not as it should be", err)
		}
		e := s.endpoint(t)
		if e.Err == nil || e.Secret != "" {
			t.Fatalf("endpoint with error %v, want one, and no secret", e.Err)
		}
		noSecrets(t, e.Err.Error(), broken, s.hook.Secret)
		s.change(t, s, disable)
		s.change(t, s, disable)
		if stored(t, d, s.hook.ID) != [...]string{broken, broken, broken} {
			t.Error("values that do not open were touched")
		}
		mended := s.change(t, s, func(hook *formsvc.Webhook) {
			hook.Secret, hook.Previous, hook.PreviousUntil, hook.Headers = "another secret", "", time.Time{}, nil
		})
		if e := s.endpoint(t); e.Err != nil || e.Secret != mended.Secret || e.Headers != nil {
			t.Errorf("with a new secret the endpoint has the error %v", e.Err)
		}
		if v := stored(t, d, s.hook.ID); v[1] != "" || v[2] != "" {
			t.Error("what did not open is still there after it was replaced by nothing")
		}
		noError(t, s.DeleteWebhook(t.Context(), s.key(), formsvc.Change{}))
	}
}

func secretsMissing(t *testing.T, d Database) {
	s := newScene(t, d, "a")
	refused := func(what, missing string, names ...string) {
		t.Helper()
		_, err := d.OpenWith(t, ring(t, names...))
		if !errors.Is(err, keyring.ErrUnknownKey) || !strings.Contains(err.Error(), keyID(t, missing)) {
			t.Errorf("%s: %v, want one that names the key %s", what, err, missing)
		}
	}
	refused("another key", "a", "b")
	refused("no key", "a")
	s.change(t, d.open(t, "b", "a"), func(hook *formsvc.Webhook) { hook.Secret = "a secret under b" })
	refused("only the old key", "b", "a")
	refused("only the new key", "a", "b")
	d.open(t, "a", "b")
	noError(t, d.bound(t, ring(t, "c", "b", "a"), func(_ bun.Tx, bound formsvc.Store) error {
		s.change(t, bound, another)
		return nil
	}))
	refused("without a key that came later", "c", "a", "b")
}

// secretsRotated has values without a key, values that can't be opened, and others.
func secretsRotated(t *testing.T, d Database) {
	s := newScene(t, d)
	plain, a, b := s.hook, keyID(t, "a"), keyID(t, "b")
	if n, err := s.RotateSecrets(t.Context()); n != 0 || err == nil {
		t.Errorf("RotateSecrets without keys: %d, %v; want an error", n, err)
	}
	s.Store = d.open(t, "a")
	old, lost := s.addWebhook(t), s.addWebhook(t)
	broken := "s1." + a + ".AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	spoil(t, d, lost.ID, broken, "secret")
	s.Store = d.open(t, "b", "a")
	wantUnder(t, d, map[string]int{"": 3, a: 6}, plain, old, lost)
	n, err := s.RotateSecrets(t.Context())
	if err == nil || n != 3 {
		t.Fatalf("RotateSecrets: %d, %v; want an error, and the values that open to be changed", n, err)
	}
	noSecrets(t, err.Error(), broken, old.Secret, lost.Secret)
	wantUnder(t, d, map[string]int{b: 8, a: 1}, plain, old, lost)
	if _, err := d.OpenWith(t, ring(t, "b")); err == nil {
		t.Error("the key of a value that is left was forgotten")
	}
	noError(t, s.DeleteWebhook(t.Context(), formsvc.WebhookKey{AccountID: s.account, ID: lost.ID}, formsvc.Change{}))
	if n, err := s.RotateSecrets(t.Context()); n != 0 || err != nil {
		t.Errorf("RotateSecrets, again: %d, %v", n, err)
	}
	s.Store = d.open(t, "b") // key a isn't needed anymore
	wantHook(t, s, &plain)
	wantHook(t, s, &old)
}

// secretsRotatedMeanwhile changes webhooks, in a process that still seals with the old key, while secrets are rotated. The
// changes are kept.
func secretsRotatedMeanwhile(t *testing.T, d Database) {
	s := newScene(t, d, "a")
	before, after := d.open(t, "a", "b"), d.open(t, "b", "a")
	hooks := make([]formsvc.Webhook, 8)
	var writers sync.WaitGroup
	var left atomic.Int32
	for i := range hooks {
		of := &scene{account: s.account, hook: s.addWebhook(t)}
		left.Add(1)
		writers.Go(func() {
			defer left.Add(-1)
			for n := range 20 {
				hooks[i] = of.change(t, before, func(hook *formsvc.Webhook) { hook.Secret = fmt.Sprintf("secret %d of %s", n, hook.ID) })
			}
		})
	}
	defer writers.Wait()
	for rotated := false; !rotated; {
		rotated = left.Load() == 0
		must(after.RotateSecrets(t.Context()))
	}
	for i := range hooks {
		wantHook(t, before, &hooks[i])
	}
	wantUnder(t, d, map[string]int{keyID(t, "b"): 3 * len(hooks)}, hooks...)
}

// secretsRotatedBesideBound rotates while an open transaction of a host seals with a key that nothing else needs anymore:
// the key isn't forgotten.
func secretsRotatedBesideBound(t *testing.T, d Database) {
	s := newScene(t, d, "b")
	after := d.open(t, "b", "a")
	tx := must(d.DB.BeginTx(t.Context(), nil))
	bound := must(d.Bind(tx, ring(t, "a", "b")))
	hook := s.change(t, bound, another)
	_, err := d.besideTx(t, "a rotation beside a seal", tx.Commit, func() ([]formsvc.ID, error) {
		_, err := after.RotateSecrets(t.Context())
		return nil, err
	})
	noError(t, err)
	wantHook(t, d.open(t, "b"), &hook)
}
