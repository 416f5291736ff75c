package settings

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/formsvc/toolkit/formsvc"
)

// Names of the cookie. Browsers take one that begins with __Host- over TLS only, for
// this host alone, and from no neighbour (RFC 6265bis §4.1.3.2).
const (
	cookieName       = "formsvc_session"
	secureCookieName = "__Host-formsvc_session"
)

// authenticate returns who is signed in, or [formsvc.ErrUnauthenticated].
func (v *visit) authenticate() (*Visitor, error) {
	if v.h.authenticate != nil {
		who, err := v.h.authenticate(v.r)
		if err == nil && who == nil {
			return nil, formsvc.ErrUnauthenticated
		}
		return who, err
	}
	cookie, err := v.r.Cookie(v.cookieName())
	if err != nil {
		return nil, formsvc.ErrUnauthenticated
	}
	session, err := v.h.svc.Sessions.Authenticate(v.ctx(), cookie.Value)
	if err != nil {
		return nil, err
	}
	v.session = cookie.Value
	return &Visitor{AccountID: session.AccountID}, nil
}

// secure reports whether the browser speaks TLS.
func (v *visit) secure() bool {
	if v.h.baseURL != nil {
		return v.h.baseURL.Scheme == "https"
	}
	return v.r.TLS != nil
}

func (v *visit) cookieName() string {
	if v.secure() {
		return secureCookieName
	}
	return cookieName
}

// setCookie gives the browser a session until the time; "" takes it away.
func (v *visit) setCookie(value string, until time.Time) {
	cookie := &http.Cookie{ //nolint:gosec // without TLS there is no other way
		Name: v.cookieName(), Value: value, Path: "/", Secure: v.secure(), HttpOnly: true, SameSite: http.SameSiteLaxMode, Expires: until,
	}
	if value == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(v.w, cookie)
}

// A signInPage is for who has a link, or needs one.
type signInPage struct {
	Token  string // of the link
	Mails  bool   // whether links are sent by mail
	Mailed bool
	Own    bool // whether sessions are ours
	Wrong  string
}

func (v *visit) showSignIn(status int, wrong string) error {
	return v.show(status, "sign-in", "Sign in", signInPage{
		Token: v.r.PathValue("token"), Mails: v.h.sendLink != nil, Mailed: v.query("mailed") != "", Own: v.h.authenticate == nil, Wrong: wrong,
	})
}

// signInPage shows the button that redeems a link. Opening a link alone does not:
// programs that look into mail open links, too.
func (v *visit) signInPage() error {
	if v.h.authenticate != nil {
		return formsvc.ErrNotFound
	}
	return v.showSignIn(http.StatusOK, "")
}

// signIn redeems a link. The session is a new one whatever the browser had before.
func (v *visit) signIn() error {
	if v.h.authenticate != nil {
		return formsvc.ErrNotFound
	}
	if err := v.readForm(); err != nil {
		return err
	}
	session, value, err := v.h.svc.Sessions.SignIn(v.ctx(), v.field("link"))
	if errors.Is(err, formsvc.ErrUnauthenticated) {
		return v.showSignIn(http.StatusUnauthorized, "This link was used already, or is older than 15 minutes. Ask for a new one.")
	}
	if err != nil {
		return err
	}
	if old, err := v.r.Cookie(v.cookieName()); err == nil {
		if err := v.h.svc.Sessions.SignOut(v.ctx(), old.Value); err != nil {
			return err
		}
	}
	v.setCookie(value, session.ExpiresAt)
	return v.redirect("/", nil)
}

// signOut ends the session, on every node.
func (v *visit) signOut() error {
	if v.session == "" {
		return formsvc.ErrNotFound
	}
	end := func() error { return v.h.svc.Sessions.SignOut(v.ctx(), v.session) }
	if v.field("everywhere") != "" {
		end = func() error { return v.h.svc.Sessions.SignOutAll(v.ctx(), v.account()) }
	}
	if err := end(); err != nil {
		return err
	}
	v.setCookie("", time.Unix(0, 0))
	return v.redirect("/sign-in", nil)
}

// A mailLimit bounds how many links are mailed: to each account, and in all.
type mailLimit struct {
	mu       sync.Mutex
	all      *rate.Limiter
	accounts map[formsvc.ID]time.Time
}

// How often links are mailed.
const (
	mailPause = time.Minute // between two to one account
	mailBurst = 20          // in all, and then one every 3 seconds
)

// allow reports whether the account may be sent a link now.
func (l *mailLimit) allow(account formsvc.ID, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all, l.accounts = rate.NewLimiter(rate.Every(3*time.Second), mailBurst), map[formsvc.ID]time.Time{}
	}
	for id, at := range l.accounts {
		if now.Sub(at) >= mailPause {
			delete(l.accounts, id)
		}
	}
	if _, ok := l.accounts[account]; ok || !l.all.AllowN(now, 1) {
		return false
	}
	l.accounts[account] = now
	return true
}

// mailLink mails a link to the contact of an account. What it answers does not depend
// on whether there is such an account.
func (v *visit) mailLink() error {
	if v.h.sendLink == nil {
		return formsvc.ErrNotFound
	}
	if err := v.readForm(); err != nil {
		return err
	}
	if err := v.mailTo(v.field("email")); err != nil {
		return err
	}
	return v.redirect("/sign-in", url.Values{"mailed": {"1"}})
}

func (v *visit) mailTo(email string) error {
	accounts, err := v.h.svc.Accounts.List(v.ctx())
	if err != nil {
		return err
	}
	for _, a := range accounts {
		if a.Contact == "" || !formsvc.SameEmail(a.Contact, email) || !v.h.mails.allow(a.ID, v.h.now()) {
			continue
		}
		token, until, err := v.h.svc.As("mail to the contact").Sessions.NewLink(v.ctx(), a.ID)
		if err != nil {
			return err
		}
		link := v.h.baseURL.String() + "/sign-in/" + token
		if err := v.h.sendLink(v.ctx(), a.Contact, link, until); err != nil {
			v.h.logger.LogAttrs(v.ctx(), slog.LevelError, "a sign-in link was not sent", slog.String("account", string(a.ID)), slog.String("error", err.Error()))
		}
	}
	return nil
}

// principalKey is where a request for the API carries who asks.
type principalKey struct{}

// principalOf returns who asks the API: a visitor may do there what the pages show.
func principalOf(r *http.Request) (*formsvc.Principal, error) {
	who, ok := r.Context().Value(principalKey{}).(*formsvc.Principal)
	if !ok {
		return nil, formsvc.ErrUnauthenticated
	}
	return who, nil
}
