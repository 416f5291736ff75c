package storagetest

import (
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// wantKeys fails the test unless the keys of the account are these.
func (w *world) wantKeys(what string, account formsvc.ID, want ...formsvc.Key) {
	w.Helper()
	got, err := w.store.Keys(w.ctx, account)
	w.must("Keys", err)
	w.same("keys after "+what, got, want)
	for _, key := range want {
		got, err := w.store.KeyByHash(w.ctx, key.Hash)
		w.must("KeyByHash", err)
		w.same("key after "+what, got, key)
	}
}

func testUseKeys(w *world) {
	a, b := w.addAccount(), w.addAccount()
	first, second, idle, theirs := w.addKey(a.ID), w.addKey(a.ID), w.addKey(a.ID), w.addKey(b.ID)
	at := nextDay()
	use := func(key *formsvc.Key, at time.Time) formsvc.KeyUse {
		return formsvc.KeyUse{AccountID: key.AccountID, ID: key.ID, At: at}
	}
	w.must("UseKeys", w.store.UseKeys(w.ctx, nil))
	w.must("UseKeys", w.store.UseKeys(w.ctx, []formsvc.KeyUse{
		use(&first, at.Add(time.Hour)), {AccountID: a.ID, ID: w.nextID(), At: at}, {AccountID: a.ID, ID: theirs.ID, At: at},
		{AccountID: w.nextID(), ID: idle.ID, At: at}, {AccountID: a.ID, ID: "nope", At: at}, {AccountID: "", ID: idle.ID, At: at},
		{AccountID: a.ID, ID: idle.ID[:35] + "\x00", At: at}, use(&second, at.Add(999*time.Nanosecond).In(time.FixedZone("", 3600))),
	}))
	first.LastUsedAt, second.LastUsedAt = at.Add(time.Hour), at
	w.wantKeys("UseKeys", a.ID, first, second, idle)
	w.wantKeys("UseKeys of another account", b.ID, theirs)

	// Only what is later counts, whatever the order.
	w.must("UseKeys", w.store.UseKeys(w.ctx, []formsvc.KeyUse{
		use(&first, at), use(&second, at.Add(time.Second)), use(&second, at.Add(time.Hour)), use(&second, at.Add(time.Minute)),
	}))
	second.LastUsedAt = at.Add(time.Hour)
	w.wantKeys("UseKeys, again", a.ID, first, second, idle)
	w.must("RevokeKey", w.store.RevokeKey(w.ctx, a.ID, first.ID, at, formsvc.Change{}))
	first.RevokedAt = at
	w.wantKeys("RevokeKey", a.ID, first, second, idle)
}

// testUseKeysTogether has several write the uses of the same keys, in different orders.
func testUseKeysTogether(w *world) {
	a := w.addAccount()
	keys := make([]formsvc.Key, 50)
	uses := make([]formsvc.KeyUse, len(keys))
	for i := range keys {
		keys[i] = w.addKey(a.ID)
		uses[i] = formsvc.KeyUse{AccountID: a.ID, ID: keys[i].ID}
		keys[i].LastUsedAt = nextDay().Add((writers - 1) * time.Minute)
	}
	w.together(writers, func(i int) {
		mine := slices.Clone(uses)
		for j := range mine {
			mine[j].At = nextDay().Add(time.Duration((i+j)%writers) * time.Minute)
		}
		if i%2 == 0 {
			slices.Reverse(mine)
		}
		w.check("UseKeys", w.store.UseKeys(w.ctx, mine))
	})
	w.wantKeys("UseKeys by many", a.ID, keys...)
}
