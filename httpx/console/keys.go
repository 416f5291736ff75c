package console

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

type keysPage struct {
	Keys          []formsvc.Key
	Pager         pager
	Permissions   []choice
	Name, Expires string // as typed
}

// keyInForce is the state of an active key.
const keyInForce = "active"

// keyState returns the state of a key.
func keyState(k *formsvc.Key, now time.Time) string {
	switch {
	case !k.RevokedAt.IsZero():
		return "revoked"
	case !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt):
		return "expired"
	}
	return keyInForce
}

// keys lists the keys of the account, newest first, with a form to create one.
func (v *visit) keys() error { return v.showKeys(http.StatusOK, keysPage{}, nil) }

func (v *visit) showKeys(status int, p keysPage, chosen []formsvc.Permission) error {
	list, err := v.svc.Keys.List(v.ctx(), v.account())
	if err != nil {
		return err
	}
	p.Keys, p.Pager = cut(v, list, func(k *formsvc.Key) formsvc.ID { return k.ID }) // an account has few
	offered := slices.DeleteFunc(formsvc.AllPermissions(), func(p formsvc.Permission) bool { return !v.who.permits(p) })
	p.Permissions = choices(v.h, offered, chosen)
	return v.show(status, "keys", "API keys", p)
}

// createKey creates a key and shows its value once.
func (v *visit) createKey() error {
	form := keysPage{Name: v.field("name"), Expires: v.field("expires")}
	var chosen []formsvc.Permission
	for _, name := range v.r.PostForm["permissions"] {
		chosen = append(chosen, formsvc.Permission(name))
		if !v.who.permits(chosen[len(chosen)-1]) {
			return lacking(chosen[len(chosen)-1]) // a key may not do more than its maker
		}
	}
	expires, err := time.ParseDuration(form.Expires)
	if err != nil && form.Expires != "" || expires < 0 {
		return &refusal{http.StatusBadRequest, "The form can't be read", "Choose one of the listed expiry times."}
	}
	key, repeated, err := once(v, func(svc *formsvc.Service) (formsvc.NewKey, error) {
		return svc.Keys.Create(v.ctx(), v.account(), formsvc.KeyInput{Name: form.Name, Permissions: chosen, Expires: expires})
	})
	if v.invalid(err) {
		return v.showKeys(http.StatusUnprocessableEntity, form, chosen)
	}
	if err != nil || repeated {
		return cmp.Or(err, error(errShown))
	}
	return v.show(http.StatusOK, "key-made", "Your new API key", key)
}

// revokeKey ends a key for good.
func (v *visit) revokeKey() error {
	err := v.svc.Keys.Revoke(v.ctx(), v.account(), v.id("key"))
	return v.done(err, "/keys", "revoked")
}
