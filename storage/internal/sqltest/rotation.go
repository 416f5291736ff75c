package sqltest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/keyring"
)

// under counts the stored values by the key that sealed them.
func under(t testing.TB, d Database, hooks ...formsvc.Webhook) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	for _, hook := range hooks {
		v := stored(t, d, hook.ID)
		for _, text := range v.texts() {
			id, err := keyring.KeyID(text)
			if err != nil {
				id = "corrupt"
			}
			counts[id]++
		}
	}
	return counts
}

func secretsRotated(t *testing.T, d Database) {
	s := newSecretScene(t, d, nil)
	plain := s.hook
	s.Store = d.open(t, ring(t, "a"))
	old := s.addWebhook(t)
	s.Store = d.open(t, ring(t, "b", "a"))
	if got := under(t, d, plain, old); got[""] != 3 || got[key(t, "a").ID()] != 3 {
		t.Fatalf("values by key: %v", got)
	}
	for _, want := range []int{2, 0} {
		if n, err := s.RotateSecrets(t.Context()); n != want || err != nil {
			t.Errorf("RotateSecrets: %d, %v; want %d", n, err, want)
		}
	}
	if got := under(t, d, plain, old); got[key(t, "b").ID()] != 6 {
		t.Errorf("values by key: %v, want all under b", got)
	}
	s.Store = d.open(t, ring(t, "b")) // key a isn't needed anymore
	wantHook(t, s, &plain)
	wantHook(t, s, &old)
}

// secretsRotatedMeanwhile changes webhooks, in a process that still seals with the old
// key, while secrets are rotated. The changes are kept, and no key is forgotten that a
// value needs.
func secretsRotatedMeanwhile(t *testing.T, d Database) {
	s := newSecretScene(t, d, ring(t, "a"))
	before, after := d.open(t, ring(t, "a", "b")), d.open(t, ring(t, "b", "a"))
	hooks := make([]formsvc.Webhook, 8)
	for i := range hooks {
		hooks[i] = s.addWebhook(t)
	}
	var writers, rotation sync.WaitGroup
	done := make(chan struct{})
	for i := range hooks {
		writers.Go(func() {
			key := formsvc.WebhookKey{AccountID: s.account, ID: hooks[i].ID}
			for n := range 20 {
				hook, err := before.UpdateWebhook(t.Context(), key, func(hook *formsvc.Webhook) (formsvc.Change, error) {
					hook.Version++
					hook.Secret = fmt.Sprintf("secret %d of %s", n, hook.ID)
					return formsvc.Change{}, nil
				})
				if err != nil {
					t.Error(err)
					return
				}
				hooks[i] = hook
			}
		})
	}
	rotation.Go(func() {
		for {
			_, _ = after.RotateSecrets(t.Context()) // may give up while the other process writes
			select {
			case <-done:
				return
			default:
			}
		}
	})
	writers.Wait()
	close(done)
	rotation.Wait()
	s.Store = before
	for i := range hooks {
		wantHook(t, s, &hooks[i])
	}
	var registered []string
	must(t, d.DB.NewSelect().Table("formsvc_secret_keys").Column("id").Scan(t.Context(), &registered))
	needed := under(t, d, hooks...)
	for _, id := range registered {
		delete(needed, id)
	}
	if len(needed) > 0 {
		t.Errorf("keys %v have been forgotten, values by key: %v", needed, under(t, d, hooks...))
	}
	if _, err := after.RotateSecrets(t.Context()); err != nil {
		t.Error(err)
	}
	if got := under(t, d, hooks...); got[key(t, "b").ID()] != 3*len(hooks) {
		t.Errorf("values by key: %v, want all under b", got)
	}
}

// secretsRotatedBesideBound rotates while an open transaction of a host seals with a key
// that nothing else needs anymore: the key isn't forgotten.
func secretsRotatedBesideBound(t *testing.T, d Database) {
	s := newSecretScene(t, d, ring(t, "b"))
	d.open(t, ring(t, "a", "b")) // registers a
	after := d.open(t, ring(t, "b", "a"))
	tx, err := d.DB.BeginTx(t.Context(), nil)
	must(t, err)
	bound, err := d.Bind(tx, ring(t, "a", "b"))
	must(t, err)
	hook, err := bound.UpdateWebhook(t.Context(), s.key(), func(hook *formsvc.Webhook) (formsvc.Change, error) {
		hook.Version++
		hook.Secret = "another secret"
		return formsvc.Change{}, nil
	})
	must(t, err)
	_, err = d.besideTx(t, "a rotation beside a seal", tx.Commit, func() ([]formsvc.ID, error) {
		_, err := after.RotateSecrets(t.Context())
		return nil, err
	})
	must(t, err)
	s.Store = d.open(t, ring(t, "b"))
	wantHook(t, s, &hook)
}

func secretsNotRotated(t *testing.T, d Database) {
	s := newSecretScene(t, d, ring(t, "a"))
	good := s.addWebhook(t)
	broken := "s1." + key(t, "a").ID() + ".AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	store(t, d, s.hook.ID, "secret", broken)
	s.Store = d.open(t, ring(t, "b", "a"))
	n, err := s.RotateSecrets(t.Context())
	if err == nil || n != 2 {
		t.Fatalf("RotateSecrets: %d, %v; want an error, and the values that open to be changed", n, err)
	}
	noSecrets(t, err.Error(), broken, s.hook.Secret, good.Secret)
	if got := under(t, d, s.hook, good); got[key(t, "b").ID()] != 5 || got[key(t, "a").ID()] != 1 {
		t.Errorf("values by key: %v", got)
	}
	if _, err := d.OpenWith(t, ring(t, "b")); err == nil {
		t.Error("the key of a value that is left was forgotten")
	}
}

func secretsWithoutKey(t *testing.T, d Database) {
	s := newSecretScene(t, d, nil)
	if n, err := s.RotateSecrets(t.Context()); n != 0 || err == nil {
		t.Errorf("RotateSecrets without keys: %d, %v; want an error", n, err)
	}
	wantHook(t, s, &s.hook)
}
