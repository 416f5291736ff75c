package formsvc_test

import (
	"errors"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func (w *world) authenticated(svc *formsvc.Service, value string) {
	w.tb.Helper()
	must(svc.Keys.Authenticate(w.ctx, value))
}

// wantUsed fails the test unless the key was last used that long after start; negative
// means never.
func (w *world) wantUsed(what string, key *formsvc.Key, after time.Duration) {
	w.tb.Helper()
	list := must(w.svc.Keys.List(w.ctx, w.account))
	want := start().Add(after)
	if after < 0 {
		want = time.Time{}
	}
	for i := range list {
		if list[i].ID == key.ID && !list[i].LastUsedAt.Equal(want) {
			w.tb.Errorf("%s: last used at %v, want %v", what, list[i].LastUsedAt, want)
		}
	}
}

func (w *world) writeUses(svc *formsvc.Service) {
	w.tb.Helper()
	wantError(w.tb, svc.Keys.WriteUses(w.ctx), nil)
}

func TestKeyUseIsRecorded(t *testing.T) {
	w := newWorld(t)
	key, value := w.key(formsvc.FilesRead)
	idle, _ := w.key(formsvc.FilesRead)
	w.writeUses(w.svc)
	equal(t, w.store.count("UseKeys"), 0, "nothing was written %d times")
	w.authenticated(w.svc, value)
	w.wantUsed("not written yet", &key, -1)
	w.writeUses(w.svc)
	w.wantUsed("written", &key, 0)

	// A cached key is neither read nor noted.
	w.clock.set(start().Add(formsvc.KeyCacheTTL - time.Millisecond))
	w.authenticated(w.svc, value)
	w.writeUses(w.svc)
	equal(t, w.store.count("UseKeys"), 1, "uses were written %d times")
	w.clock.set(start().Add(formsvc.KeyCacheTTL))
	w.authenticated(w.svc, value)
	w.clock.set(start().Add(time.Minute))
	w.authenticated(w.svc, value)
	w.writeUses(w.svc)
	w.wantUsed("used again", &key, time.Minute)
	w.wantUsed("never used", &idle, -1)

	// A node that is late, or whose clock is behind, doesn't set it back.
	node := w.neighbour()
	w.clock.set(start().Add(30 * time.Second))
	w.authenticated(node, value)
	w.writeUses(node)
	w.wantUsed("by a node that is late", &key, time.Minute)
	w.clock.set(start().Add(time.Hour))
	w.authenticated(node, value)
	w.clock.set(start().Add(time.Second))
	w.authenticated(node, value)
	w.writeUses(node)
	w.wantUsed("by a node whose clock steps back", &key, time.Hour)
}

// Only an active key is noted as used.
func TestRefusedKeysAreNotUsed(t *testing.T) {
	w := newWorld(t)
	revoked, value := w.key(formsvc.FilesRead)
	wantError(t, w.svc.Keys.Revoke(w.ctx, w.account, revoked.ID), nil)
	expired := must(w.svc.Keys.Create(w.ctx, w.account,
		formsvc.KeyInput{Name: "old", Permissions: formsvc.AllPermissions(), Expires: time.Hour}))
	w.clock.add(time.Hour)
	for _, value := range []string{value, expired.Value} {
		wantError(t, failure(w.svc.Keys.Authenticate(w.ctx, value)), formsvc.ErrUnauthenticated)
	}
	w.writeUses(w.svc)
	w.wantUsed("revoked", &revoked, -1)
	w.wantUsed("expired", &expired.Key, -1)
}

// A use that can't be written is written the next time, unless there is a later one.
func TestKeyUseIsRetried(t *testing.T) {
	w := newWorld(t)
	first, value := w.key(formsvc.FilesRead)
	second, other := w.key(formsvc.FilesRead)
	w.authenticated(w.svc, value)
	w.authenticated(w.svc, other)
	fault := errors.New("broken pipe")
	w.store.disturb(func(method string, call int) error {
		if method == "UseKeys" && call == 1 {
			w.clock.add(time.Minute)
			w.authenticated(w.svc, value) // while it is being written
			return fault
		}
		return nil
	})
	wantError(t, w.svc.Keys.WriteUses(w.ctx), fault)
	w.wantUsed("not written", &first, -1)
	w.writeUses(w.svc)
	w.wantUsed("used meanwhile", &first, time.Minute)
	w.wantUsed("not used meanwhile", &second, 0)
}
