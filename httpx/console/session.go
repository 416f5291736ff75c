package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/limits"
)

// Names of the cookie. Browsers accept one that begins with __Host- over TLS only, and neither from nor for
// neighbouring hosts (RFC 6265bis §4.1.3.2).
const (
	cookieName       = "formsvc_session"
	secureCookieName = "__Host-formsvc_session"
)

// How often links and sessions may be guessed from one address, as for keys: for IPv6, from one /64 network. A valid one always passes.
const (
	failureBurst = 120
	failureEvery = time.Second
)

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

// signIn redeems a link. It always begins a new session, and ends the browser's previous one. If that one can't be ended, the visitor is
// signed in all the same, since the link is used up.
func (v *visit) signIn() error {
	var session formsvc.Session
	var value string
	err := v.look(func() (err error) {
		session, value, err = v.h.svc.Sessions.SignIn(v.ctx(), v.field("link"), v.r.UserAgent())
		return err
	})
	if errors.Is(err, formsvc.ErrUnauthenticated) {
		return v.showSignIn(http.StatusUnauthorized, "This link has been used or is older than 15 minutes. Ask for a new one.")
	}
	if err != nil {
		return err
	}
	if old, err := v.r.Cookie(v.cookieName()); err == nil {
		if err := v.h.svc.Sessions.SignOut(v.ctx(), old.Value); err != nil {
			v.h.opts.Logger.LogAttrs(v.ctx(), slog.LevelError, "a previous session was not ended", slog.String("error", err.Error()))
		}
	}
	v.setCookie(v.cookieName(), value, "/", session.ExpiresAt.Sub(v.svc.Now()))
	return v.redirect(nil, "/", nil)
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
	return v.redirect(nil, "/sign-in", nil)
}

// Limits of mailed links.
const (
	mailPause     = time.Minute // between two mails to one account
	mailBurst     = 20          // mails in all, then one every 3 seconds
	mailTime      = time.Minute // to create a link and hand over its mail
	mailersAtMost = 4           // requests whose account is looked for, or whose mail is sent, at once
	askBurst      = 10          // requests from one address, then one every askEvery
	askEvery      = 6 * time.Second
)

// mailLink mails a link to the contact of an account. Its reply is the same whether or not the account exists, and comes as soon: the
// account is looked for afterwards.
func (v *visit) mailLink() error {
	h, email := v.h, v.field("email")
	if err := v.limited(h.asked, limits.Network(h.opts.ClientAddress(v.r)), nil); err != nil {
		return err
	}
	select {
	case h.mailers <- struct{}{}:
	default:
		return errBusy
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.ctx()), mailTime)
	h.mailing.Go(func() {
		defer func() { <-h.mailers }()
		defer cancel()
		accounts, err := h.svc.Accounts.List(ctx)
		if err != nil {
			h.opts.Logger.LogAttrs(ctx, slog.LevelError, "no sign-in link was sent", slog.String("error", err.Error()))
		}
		for _, a := range accounts {
			if a.Contact == "" || formsvc.FoldEmail(a.Contact) != formsvc.FoldEmail(email) {
				continue
			}
			if _, ok := h.mailed.Take(string(a.ID), h.svc.Now()); !ok || !h.mails.AllowN(h.svc.Now(), 1) {
				continue
			}
			if err := h.mailTo(ctx, &a); err != nil {
				h.opts.Logger.LogAttrs(ctx, slog.LevelError, "a sign-in link was not sent", slog.String("account", string(a.ID)), slog.String("error", err.Error()))
			}
		}
	})
	return v.redirect(nil, "/sign-in", url.Values{"mailed": {"1"}})
}

func (h *Handler) mailTo(ctx context.Context, a *formsvc.Account) error {
	token, until, err := h.svc.As(formsvc.Actor{Name: "mail to the contact"}).Sessions.NewLink(ctx, a.ID)
	if err != nil {
		return err
	}
	return h.opts.SendLink(ctx, a.Contact, h.baseURL.String()+"/sign-in/"+token, until)
}
