package console

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/limits"
)

// cookieName is the name of the cookie of sessions, see [visit.named].
const cookieName = "formsvc_session"

// look runs a look-up of a session or link in a slot that the address shares with others, and limits its failures.
func (v *visit) look(up func() error) error {
	network := limits.Network(v.h.opts.ClientAddress(v.r))
	slot, err := v.h.api.Limits().Lookups.Acquire(v.ctx(), network)
	if err != nil {
		return busy(err)
	}
	err = up()
	slot.Release()
	if errors.Is(err, formsvc.ErrUnauthenticated) {
		return v.limited(v.h.failures, network, err)
	}
	return err
}

// limited takes a token of the network. It returns err, or the refusal if there is no token.
func (v *visit) limited(l *limits.Limiter, network string, err error) error {
	wait, ok := l.Take(network, v.svc.Now())
	if ok {
		return err
	}
	v.w.Header().Set("Retry-After", strconv.Itoa(limits.Seconds(wait, 1)))
	return &refusal{http.StatusTooManyRequests, "Too many tries", "Too many tries came from your address. Wait a minute, then try again."}
}

// authenticate returns the signed-in visitor, or [formsvc.ErrUnauthenticated].
func (v *visit) authenticate() (*Visitor, error) {
	if v.h.opts.Authenticate != nil {
		who, err := v.h.opts.Authenticate(v.r)
		if err == nil && who == nil {
			return nil, formsvc.ErrUnauthenticated
		}
		return who, err
	}
	if who, err := v.proxied(); who != nil || err != nil {
		return who, err
	}
	cookie, err := v.r.Cookie(v.cookieName())
	if err != nil {
		return nil, formsvc.ErrUnauthenticated
	}
	var member *formsvc.Member
	if err := v.look(func() (err error) {
		v.began, member, err = v.h.svc.Sessions.Authenticate(v.ctx(), cookie.Value)
		return err
	}); err != nil {
		return nil, err
	}
	v.session = cookie.Value
	if member != nil {
		return visitorOf(member), nil
	}
	return &Visitor{AccountID: v.began.AccountID}, nil
}

// proxied returns the member that a trusted proxy has signed in, or nil for a request without its header.
func (v *visit) proxied() (who *Visitor, err error) {
	if v.h.opts.Proxied == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	id, err := v.h.opts.Proxied(v.r)
	if err != nil || id == nil {
		return nil, err
	}
	err = v.look(func() error {
		m, err := v.h.svc.Members.Identify(v.ctx(), *id)
		who = visitorOf(&m)
		return err
	})
	if errors.Is(err, formsvc.ErrUnauthenticated) {
		err = &refusal{http.StatusForbidden, "You aren't invited", "You are signed in as " + id.Email + ", whom nobody has invited here. Ask an administrator of this server."}
	}
	return who, err
}

// still returns an error if the visitor was signed out or removed since the request began, or may do less.
func (v *visit) still() (err error) {
	var member *formsvc.Member
	switch {
	case v.session != "":
		_, member, err = v.h.svc.Sessions.Check(v.ctx(), v.session)
	case v.who.member != nil:
		member = new(formsvc.Member)
		*member, err = v.h.svc.Members.Get(v.ctx(), v.who.member.Key())
	}
	if err == nil && member != nil {
		v.who.Permissions = member.Role.Permissions()
		err = v.permitted(v.r.Pattern)
	}
	return err
}

// visitorOf returns a member as the visitor.
func visitorOf(m *formsvc.Member) *Visitor {
	return &Visitor{AccountID: m.AccountID, UserID: string(m.ID), Name: m.Name, Permissions: m.Role.Permissions(), member: m}
}

// secure reports whether the browser speaks TLS.
func (v *visit) secure() bool {
	if v.h.baseURL != nil {
		return v.h.baseURL.Scheme == "https"
	}
	return v.r.TLS != nil
}

func (v *visit) cookieName() string { return v.named(cookieName) }

// named returns the name of a cookie. Browsers accept one that begins with __Host- over TLS only, and neither from nor for neighbouring hosts
// (RFC 6265bis §4.1.3.2).
func (v *visit) named(name string) string {
	if v.secure() {
		return "__Host-" + name
	}
	return name
}

// setCookie sets a cookie that only we get, for some time. A negative time deletes it.
func (v *visit) setCookie(name, value, path string, last time.Duration) {
	http.SetCookie(v.w, &http.Cookie{ //nolint:gosec // without TLS the cookie can't be secure
		Name: name, Value: value, Path: path, MaxAge: int(last.Seconds()), Secure: v.secure(), HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// signOut ends the session on every node, or every session of the account.
func (v *visit) signOut() error {
	var err error
	if v.field("everywhere") == "" {
		err = v.svc.Sessions.SignOut(v.ctx(), v.session)
	} else if err = v.permitted("POST /people"); err == nil {
		err = v.svc.Sessions.SignOutAll(v.ctx(), v.account())
	}
	if err != nil {
		return err
	}
	v.setCookie(v.cookieName(), "", "/", -time.Second)
	if name, ok := strings.CutPrefix(v.began.Way, formsvc.SignedInByProvider+" "); ok && v.h.provider(name) != nil {
		return v.redirect(nil, "/sign-in/with/"+name+"/end", nil)
	}
	return v.redirect(nil, "/sign-in", nil)
}
