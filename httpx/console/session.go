package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Names of the cookie. Browsers accept one that begins with __Host- over TLS only, and neither from nor for
// neighbouring hosts (RFC 6265bis §4.1.3.2).
const (
	cookieName       = "formsvc_session"
	secureCookieName = "__Host-formsvc_session"
)

// authenticate returns the signed-in visitor, or [formsvc.ErrUnauthenticated].
func (v *visit) authenticate() (*Visitor, error) {
	if v.h.opts.Authenticate != nil {
		who, err := v.h.opts.Authenticate(v.r)
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

// setCookie sets a cookie that only we get, for some time. A negative time deletes it.
func (v *visit) setCookie(name, value, path string, last time.Duration) {
	http.SetCookie(v.w, &http.Cookie{ //nolint:gosec // without TLS the cookie can't be secure
		Name: name, Value: value, Path: path, MaxAge: int(last.Seconds()), Secure: v.secure(), HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// A signInPage is for visitors with a link, and for those who need one.
type signInPage struct {
	Token  string // of the link
	Mails  bool   // whether the page offers to mail links
	Mailed bool
	Own    bool // whether sessions are our own
	Wrong  string
}

func (v *visit) showSignIn(status int, wrong string) error {
	return v.show(status, "sign-in", "Sign in", signInPage{
		Token: v.r.PathValue("token"), Mails: v.h.opts.SendLink != nil, Mailed: v.query("mailed") != "", Own: v.h.opts.Authenticate == nil, Wrong: wrong,
	})
}

// signInPage shows the button that redeems a link. Opening the link doesn't redeem it, since mail scanners open links
// too.
func (v *visit) signInPage() error { return v.showSignIn(http.StatusOK, "") }

// signIn redeems a link. It always begins a new session, and ends the browser's previous one.
func (v *visit) signIn() error {
	session, value, err := v.h.svc.Sessions.SignIn(v.ctx(), v.field("link"))
	if errors.Is(err, formsvc.ErrUnauthenticated) {
		return v.showSignIn(http.StatusUnauthorized, "This link has been used or is older than 15 minutes. Ask for a new one.")
	}
	if err != nil {
		return err
	}
	if old, err := v.r.Cookie(v.cookieName()); err == nil {
		if err := v.h.svc.Sessions.SignOut(v.ctx(), old.Value); err != nil {
			return err
		}
	}
	v.setCookie(v.cookieName(), value, "/", session.ExpiresAt.Sub(v.h.now()))
	return v.redirect("/", nil)
}

// signOut ends the session on every node, or every session of the account.
func (v *visit) signOut() error {
	var err error
	if v.field("everywhere") != "" {
		err = v.svc.Sessions.SignOutAll(v.ctx(), v.account())
	} else {
		err = v.svc.Sessions.SignOut(v.ctx(), v.session)
	}
	if err != nil {
		return err
	}
	v.setCookie(v.cookieName(), "", "/", -time.Second)
	return v.redirect("/sign-in", nil)
}

// Limits of mailed links.
const (
	mailPause = time.Minute // between two mails to one account
	mailBurst = 20          // mails in all, then one every 3 seconds
	mailTime  = time.Minute // to create a link and hand over its mail
)

// mailLink mails a link to the contact of an account. Its reply is the same whether or not the account exists, and comes as soon: the
// mail is sent afterwards.
func (v *visit) mailLink() error {
	accounts, err := v.h.svc.Accounts.List(v.ctx())
	if err != nil {
		return err
	}
	h, email := v.h, v.field("email")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.ctx()), mailTime)
	h.mailing.Go(func() {
		defer cancel()
		for _, a := range accounts {
			if a.Contact == "" || formsvc.FoldEmail(a.Contact) != formsvc.FoldEmail(email) {
				continue
			}
			if _, ok := h.mailed.Take(string(a.ID), h.now()); !ok || !h.mails.AllowN(h.now(), 1) {
				continue
			}
			if err := h.mailTo(ctx, &a); err != nil {
				h.opts.Logger.LogAttrs(ctx, slog.LevelError, "a sign-in link was not sent", slog.String("account", string(a.ID)), slog.String("error", err.Error()))
			}
		}
	})
	return v.redirect("/sign-in", url.Values{"mailed": {"1"}})
}

func (h *Handler) mailTo(ctx context.Context, a *formsvc.Account) error {
	token, until, err := h.svc.As("mail to the contact").Sessions.NewLink(ctx, a.ID)
	if err != nil {
		return err
	}
	return h.opts.SendLink(ctx, a.Contact, h.baseURL.String()+"/sign-in/"+token, until)
}
